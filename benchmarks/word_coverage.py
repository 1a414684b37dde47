"""Agreement of the built-in judge with people, beside that of the share of covered words, on labelled public data.

    python -m benchmarks.word_coverage [SET ...] [--write]

Prints a row per set of data: its rows, AUROC of the probabilities (Spearman's correlation where labels are grades), the
same for the share of a text's words that the passages have, and the difference with an interval of a paired bootstrap
by question or document. An answer has the mean probability of its claims. Needs the labelled data in
`../shared/meta_eval` beside the repository; says so and ends without it. With `--write`, the table goes into the page
on judges.
"""

import ast
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.labelled_examples import DATA, contexts, rows
from benchmarks.results_tables import publish
from benchmarks.verdict_kinds import auroc, resamples, spearman, with_interval
from metric_core.prompts.judge_questions import YES, ask_verdict
from tasks.models.judges.builtin.claim_sentences import split_claims
from tasks.models.judges.protocol import Judge
from tasks.models.recognizers.scripts import normalize_words
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline
from tasks.opening.run_models import RunModels
from tasks.options.judged_settings import JudgedSettings

FITTED = "fitted on it"
ATTRIBUTION = ("AttributedQA", "LFQA", "ExpertQA", "Stanford-GenSearch", "AttrScore-GenSearch", "HAGRID")
LANGUAGES = {"en": "English", "de": "German", "es": "Spanish", "fr": "French", "hi": "Hindi"}
BEGIN, END = "<!-- begin: benchmarks/word_coverage.py -->", "<!-- end of word coverage -->"


@dataclass(frozen=True)
class Text:
    """A claim, or an answer, with its passages and the label of people."""

    group: str
    text: str
    premise: str
    label: float


@dataclass(frozen=True)
class LabelledSet:
    """A set of texts; answers are judged claim by claim."""

    name: str
    read: Callable[[], Iterable[Text]]
    answers: bool = False
    note: str = ""


def read_responses(file: str, label: Callable[[dict[str, Any]], object], dataset: str | None = None) -> Iterator[Text]:
    """Yield the responses of a file, or of one of the data sets in it."""
    for row in rows(file):
        if dataset in (None, row["dataset"]):
            yield Text(row["group_id"], row["response"], contexts(row), float(label(row)))  # type: ignore[arg-type]


def read_facts() -> Iterator[Text]:
    """Yield the facts of every tenth page of FActScore."""
    pages = rows("claims_factscore")
    kept = sorted({row["group_id"] for row in pages})[::10]
    for row in pages:
        if row["group_id"] in kept:
            for claim in row["label_claims"]:
                yield Text(row["group_id"], claim["claim"], contexts(row), float(claim["supported"]))


def read_nuggets(file: str, label: Callable[[dict[str, Any]], object]) -> Iterator[Text]:
    """Yield nuggets as claims on answers."""
    for row in rows(file):
        yield Text(row["group_id"], row["nugget"], row["response"], float(label(row)))  # type: ignore[arg-type]


def read_sentences(language: str) -> Iterator[Text]:
    """Yield the sentences of a language in MEMERAG that experts did not find hard."""
    labels = {"Supported": 1.0, "Not Supported": 0.0}
    for row in rows("faithfulness_memerag"):
        passages = row["retrieved_contexts"]
        premise = "\n".join(ast.literal_eval(passages) if isinstance(passages, str) else passages)
        for each in json.loads(row["sentences"]) if row["language"] == language else ():
            if (label := labels.get(each["label_factuality"])) is not None:
                yield Text(row["id"], each["sentence"], premise, label)


SETS = (
    LabelledSet("WiCE", partial(read_responses, "claims_wice", lambda row: row["label_supported"]), note=FITTED),
    LabelledSet(
        "BEGIN", partial(read_responses, "faithfulness_begin", lambda row: row["label_attributable"]), note=FITTED
    ),
    LabelledSet(
        "Factcheck-Bench",
        partial(read_responses, "claims_factcheck_stance", lambda row: row["label_supported"]),
        note=FITTED,
    ),
    *(
        LabelledSet(
            f"AttributionBench, {name}",
            partial(read_responses, "citations_attributionbench", lambda row: row["label_attributable"], name),
        )
        for name in ATTRIBUTION
    ),
    LabelledSet("FActScore, a tenth", read_facts),
    LabelledSet(
        "QAMPARI, nuggets", partial(read_nuggets, "nuggets_qampari", lambda row: row["label_assignment"] == "support")
    ),
    LabelledSet("iKAT, nuggets", partial(read_nuggets, "nuggets_ikat24", lambda row: row["label_captured"])),
    *(
        LabelledSet(f"MEMERAG, {name}", partial(read_sentences, language), note="sentences of answers")
        for language, name in LANGUAGES.items()
    ),
    LabelledSet(
        "RAGTruth QA, answers",
        partial(read_responses, "faithfulness_ragtruth_qa", lambda row: not row["label_hallucinated"]),
        answers=True,
    ),
    LabelledSet(
        "QAGS, answers", partial(read_responses, "faithfulness_qags", lambda row: row["label_consistent"]), answers=True
    ),
    LabelledSet(
        "FaithBench, answers",
        partial(read_responses, "faithfulness_faithbench", lambda row: not row["label_hallucinated"]),
        answers=True,
    ),
    LabelledSet(
        "MTRAG, answers",
        partial(read_responses, "rag_mtrag_human", lambda row: row["label_faithfulness"]),
        answers=True,
        note="Spearman",
    ),
)


def cover(text: Text) -> float:
    """Return the share of a text's words that its passages have."""
    words, known = normalize_words(text.text).split(), set(normalize_words(text.premise).split())
    return sum(word in known for word in words) / len(words) if words else 0.0


def judge_texts(judge: Judge, texts: list[Text], claims: list[list[str]]) -> list[float | None]:
    """Return the mean probability of the claims of each text; None where there is none or one has no verdict."""
    questions = [ask_verdict(claim, text.premise) for text, own in zip(texts, claims, strict=True) for claim in own]
    answers = iter(judge.choose(questions))
    means: list[float | None] = []
    for own in claims:
        found = [answer.probabilities for answer in (next(answers) for _ in own)]
        given = [probabilities[YES] for probabilities in found if probabilities is not None]
        means.append(sum(given) / len(given) if given and len(given) == len(found) else None)
    return means


def measure(judge: Judge, pipeline: SpacyPipeline, labelled: LabelledSet) -> str:
    """Return the row of a set in the table."""
    texts = list(labelled.read())
    claims = (
        split_claims([text.text for text in texts], pipeline) if labelled.answers else [[text.text] for text in texts]
    )
    values = judge_texts(judge, texts, claims)
    rated = [(text, value) for text, value in zip(texts, values, strict=True) if value is not None]
    if len(rated) < len(texts) / 2:
        return f"| {labelled.name} | {len(texts)} | undefined: {len(texts) - len(rated)} have no verdict | | | |\n"
    labels = np.array([text.label for text, _ in rated])
    agree = auroc if len(set(labels)) == 2 else spearman
    both = np.array([[value, cover(text)] for text, value in rated])
    drawn = list(resamples(np.array([text.group for text, _ in rated])))
    draws = np.array([[agree(labels[one], both[one, i]) for i in (0, 1)] for one in drawn])
    draws = draws[np.isfinite(draws).all(axis=1)]
    found = [agree(labels, both[:, i]) for i in (0, 1)]
    cells = (
        labelled.name,
        len(rated),
        with_interval(found[0], draws[:, 0], decimals=2),
        f"{found[1]:.2f}",
        with_interval(found[0] - found[1], draws[:, 0] - draws[:, 1], sign="+", decimals=2),
        labelled.note,
    )
    return f"| {' | '.join(map(str, cells))} |\n"


def measure_sets(names: list[str]) -> Iterator[str]:
    """Yield the lines of the table."""
    judge, pipeline = RunModels().open_judges(JudgedSettings()), SpacyPipeline()
    yield "| data | rows | AUROC, with 95 % interval | of the share of covered words | difference | |\n"
    yield "|---|---|---|---|---|---|\n"
    for labelled in SETS:
        if not names or labelled.name in names:
            yield measure(judge, pipeline, labelled)


def main() -> None:
    """Print the table."""
    if not DATA.is_dir():
        sys.exit(f"skipped: the labelled data is missing, there is no {DATA}")
    names = [word for word in sys.argv[1:] if word != "--write"]
    publish(measure_sets(names), BEGIN, END, write="--write" in sys.argv)


if __name__ == "__main__":
    main()
