"""Guides to the metrics of citations."""

from collections.abc import Mapping, Sequence

from metric_core.claims.citation_forms import FORMS
from metric_core.evidence import ALL_CONTEXTS, Evidence, context_premise
from metric_core.guides.guide import Example, Guide, judge
from metric_core.records import Place, Sample, Side, Support

_FIRST, _SECOND, _THIRD = map(context_premise, range(3))
_DELFT, _NINE, _TEA = "The shop is in Delft.", "The shop opens at nine.", "The shop sells tea."


def _cited(
    response: str, contexts: Sequence[str], claims: Sequence[tuple[str, Sequence[str], Mapping[str, Support]]]
) -> Evidence:
    """Return the evidence of a row whose claims, one in each sentence, cite labels and have verdicts."""
    places = {f"{Side.RESPONSE}:{i}": Place(0, 0, i, tuple(labels)) for i, (_, labels, _) in enumerate(claims)}
    return judge(
        Sample(response=response, retrieved_contexts=tuple(contexts)),
        {Side.RESPONSE: {text: verdicts for text, _, verdicts in claims}},
        places=places,
    )


_SHOP = _cited(
    "The shop is in Delft [1]. It opens at nine [1][3]. It sells tea.",
    ("The shop is in Delft.", "The bakery is in Delft.", "The shop opens at nine."),
    [
        (_DELFT, ("1",), {_FIRST: 1.0}),
        (_NINE, ("1", "3"), {_FIRST: 0.0, _THIRD: 1.0}),
        (_TEA, (), {}),
    ],
)
_MARKERS = (
    f"Markers are {', '.join(f'`{form.example}`' for form in FORMS)}, ids of contexts in brackets, and what "
    "`citation_pattern` finds; lists, ranges (`[1]-[3]`) and pages (`[1, p. 12]`) are read, too. They are no part of "
    "the claims that are judged, with the brackets, emphasis and words that are only about them (`(see **[1]**)`, "
    "`according to [2] and [3]`); a marker that is a word of its sentence stays in it (`as the table in [1] shows`)."
)
_NO_MARKERS = (
    "No markers are intervals, indices and lists (`scores in [0, 1]`, `x[0]`, `= [1, 2]`), years, and anything in code "
    "or formulas. `(2)` counts where a response cites in no other way; a link or URL where it is the id of a context."
)
_REFERENCES = (
    "A list of references under the answer, in English, German, French, Spanish or Hindi, is no claim, and says what "
    "its numbers mean where its lines name an id, a file or a URL of a context."
)
_BINDING = (
    "A marker belongs to the sentence before it, also behind the full stop, and within a sentence to the words since "
    "the previous marker."
)
_NAMING = (
    "A label names the context with that id; if there is none, all contexts of the file or URL that it names; "
    "otherwise the context of that number, from 1. Contexts count from 0 where the response cites a number 0 "
    "and not the number of contexts. A list or range with 0 counts only where 0 is cited alone, too."
)
_ASKED = (
    "The judge gets no questions of a new kind: a claim is judged by each cited passage alone, by all together only "
    "where none supports it alone, and, for precision, by all but one only where three or more support it together. "
    "Together, passages are joined by line breaks; blank ones and repetitions are left out. Verdicts that another "
    "metric asks for are shared."
)
_DECIDED = (
    'With `verdict = "probability"`, the judge\'s yes or no still says what is asked; support is the highest '
    "probability of the cited passages alone or together, and a citation is needed with the greater of p(alone) and "
    "p(together) * (1 - p(without it))."
)
_ALCE_JOINTLY = (
    "ALCE's program (`eval.py`) always asks about all cited passages together, whether or not one supports the "
    "sentence alone, each as `Title: ...` and its text. Here, a passage that supports a claim alone supports it with "
    "others: the scores differ where a judge says yes to a passage and no to that passage with others, which ALCE "
    "scores 0."
)
_ALCE_BEYOND = (
    "ALCE's program scores a sentence 0 in recall if one citation is out of range, and leaves its citations out of "
    "precision; here, the others can support it, and only that citation is not needed."
)
_ALCE_RESTS = (
    "For each citation that does not support the sentence alone, ALCE asks whether the others together do; here, they "
    "do if one of them does alone, and are asked about only if none does."
)
_ALCE_READS = (
    "ALCE's program reads the answer up to its first line break and at most three citations of a sentence, takes only "
    "the first number of `[1, 3]`, and counts from 1; here, everything is read."
)
_UNIT = (
    "ALCE counts sentences, `unit=sentence` does so. By default claims are counted, because a sentence with two facts "
    "can be half right. A marker behind a sentence with several claims is one citation, and needed if "
    "one of them needs it."
)

CITATION_PRECISION = Guide(
    formula=(
        "a citation is needed if its passage supports a claim of its sentence alone, or if the cited passages support "
        "it together and do not without this one\n"
        "needed citations / citations of claims"
    ),
    notes=(
        _MARKERS,
        _NO_MARKERS,
        _REFERENCES,
        _BINDING,
        _NAMING,
        "A citation that names no context counts, and is not needed. Without citations, the score is undefined.",
        _ASKED,
        _DECIDED,
    ),
    example=Example(
        evidence=_SHOP, value=2 / 3, comment="[1] behind the second sentence is not needed: 2 of 3 citations are."
    ),
    differences=(
        _UNIT,
        "A response without citations is undefined here, and 0 in ALCE, whose means are thereby lower.",
        _ALCE_BEYOND,
        _ALCE_JOINTLY,
        _ALCE_RESTS,
        _ALCE_READS,
        "Ragas has no metric of citations.",
    ),
)
CITATION_RECALL = Guide(
    formula="claims that the passages they cite support together / claims",
    notes=(
        _BINDING,
        _NAMING,
        "A claim without citations counts as not supported, so a response without any scores 0.",
        _ASKED,
        _DECIDED,
    ),
    example=Example(evidence=_SHOP, value=2 / 3, comment="The third claim cites nothing: 2 of 3 are supported."),
    differences=(
        _UNIT,
        _ALCE_JOINTLY,
        _ALCE_BEYOND,
        _ALCE_READS,
    ),
)
CITATION_F1 = Guide(
    formula="2 * precision * recall / (precision + recall), of the row's citation precision and citation recall",
    notes=("0 without citations, because the recall is 0 then, whatever the precision.", _ASKED),
    example=Example(evidence=_SHOP, value=2 / 3, comment="Precision and recall are both 2/3."),
    differences=(
        _UNIT,
        "ALCE reports precision and recall only; the mean of the rows' F1 is not the F1 of their means.",
    ),
)
MISATTRIBUTED_CLAIMS = Guide(
    formula="claims with citations that the cited passages do not support, but another retrieved passage does / claims",
    notes=(
        "Lower is better: means, gates, comparisons and colors take that into account.",
        "The other passages are asked about only where the cited ones do not support the claim.",
        "A claim whose citations name no context can be misattributed, too.",
        _NAMING,
        'With `verdict = "probability"`: (1 - p(cited)) * the highest p of another passage.',
    ),
    example=Example(
        evidence=_cited(
            "The shop is in Delft [2]. It opens at nine [3].",
            ("The shop is in Delft.", "The bakery is in Delft.", "The shop opens at nine."),
            [(_DELFT, ("2",), {_FIRST: 1.0, _SECOND: 0.0, _THIRD: 0.0}), (_NINE, ("3",), {_THIRD: 1.0})],
        ),
        value=0.5,
        comment="The first passage has what the second is cited for: one of two claims.",
    ),
    differences=("Neither ALCE nor Ragas tell a wrong number from a claim without support.",),
)
UNCITED_CLAIMS = Guide(
    formula=(
        "count=any: claims without a citation marker / claims\n"
        "count=supported: those of them that all retrieved contexts together support / claims\n"
        "count=unsupported: the others of them / claims"
    ),
    notes=(
        "Lower is better: means, gates, comparisons and colors take that into account.",
        "With `count=any` no verdicts are needed; otherwise only on claims without a marker.",
        _BINDING,
    ),
    example=Example(
        evidence=_cited(
            "The shop is in Delft [1]. It opens at nine.",
            ("The shop is in Delft.", "The shop opens at nine."),
            [(_DELFT, ("1",), {}), (_NINE, (), {ALL_CONTEXTS: 1.0})],
        ),
        parameters={"count": "supported"},
        value=0.5,
        comment="The second claim could have cited a passage: one of two claims.",
    ),
    differences=("ALCE counts sentences without citations as errors of recall only.",),
)
DANGLING_CITATIONS = Guide(
    formula="citations that name no retrieved context / citations, counted once per sentence",
    notes=(
        "Lower is better: means, gates, comparisons and colors take that into account.",
        _MARKERS,
        _NO_MARKERS,
        _NAMING,
    ),
    example=Example(
        evidence=Evidence(
            Sample(
                response="The shop is in Delft [1]. It sells tea [4].", retrieved_contexts=("The shop is in Delft.",)
            ),
            claims={Side.RESPONSE_SENTENCE: {"response_sentence:0": _DELFT, "response_sentence:1": "It sells tea."}},
            places={
                "response_sentence:0": Place(0, 0, 0, ("1",)),
                "response_sentence:1": Place(0, 0, 1, ("4",)),
            },
        ),
        value=0.5,
        comment="There is no fourth context: one of two citations.",
    ),
    differences=("All markers of the response count, also those of sentences without a claim.",),
)

GUIDES = {
    "citation_precision": CITATION_PRECISION,
    "citation_recall": CITATION_RECALL,
    "citation_f1": CITATION_F1,
    "misattributed_claims": MISATTRIBUTED_CLAIMS,
    "uncited_claims": UNCITED_CLAIMS,
    "dangling_citations": DANGLING_CITATIONS,
}
