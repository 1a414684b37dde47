"""Guides to the metrics that are ratings by a language model."""

from metric_core.guides.guide import Example, Guide, rate
from metric_core.records import Sample

_ANSWERED = Sample(user_input="When does the shop open?", response="At nine.", reference="At nine, on weekdays.")
_GROUNDED = Sample(
    user_input="When does the shop open?",
    response="The shop opens early.",
    retrieved_contexts=("The shop opens at nine.",),
)
_MEAN = "score = mean of the usable ratings, each divided by {highest}"
_PROMPTS = (
    "Two prompts ask independently. An unusable answer is left out; if both are unusable, the cell has failed.",
)
_ONE_USABLE = (
    "If one rating is unusable, the other counts, as the documents say. One implementation in Ragas then returns "
    "NaN or "
    "a value depending on which of the two it is."
)
_LABELS = "The judge chooses among the ratings. Ragas searches its prose for a digit, so `0 out of 2` can count as 2."
_SCALE = "The value is not normalized: its range is that of the scale."

NV_ACCURACY = Guide(
    formula=f"ratings 0, 2, 4; {_MEAN.format(highest=4)}",
    notes=_PROMPTS,
    example=Example(evidence=rate(_ANSWERED, "nv_accuracy", "4", "2"), value=0.75, comment="(4/4 + 2/4) / 2 = 0.75."),
    differences=(
        (
            "The second prompt swaps the roles: the response stands where the reference stood, and the reverse. "
            "So an "
            "answer that says too little and one that says too much both lose points. The documents and the newer "
            "implementation in Ragas do that; the older one swaps only the order."
        ),
        _ONE_USABLE,
        _LABELS,
    ),
)
NV_CONTEXT_RELEVANCE = Guide(
    formula=f"ratings 0, 1, 2; {_MEAN.format(highest=2)}",
    notes=(
        *_PROMPTS,
        (
            "No judge is asked, and the score is 0, if the question or the contexts are blank, or the question "
            "contains the "
            "contexts word for word."
        ),
    ),
    example=Example(
        evidence=rate(_GROUNDED, "nv_context_relevance", "2", "1"), value=0.75, comment="(2/2 + 1/2) / 2 = 0.75."
    ),
    differences=(_ONE_USABLE, _LABELS),
)
NV_RESPONSE_GROUNDEDNESS = Guide(
    formula=f"ratings 0, 1, 2; {_MEAN.format(highest=2)}",
    notes=(
        *_PROMPTS,
        (
            "No judge is asked if the response or the contexts are blank (0), or the contexts contain the "
            "response word for "
            "word (1)."
        ),
    ),
    example=Example(
        evidence=rate(_GROUNDED, "nv_response_groundedness", "1", "1"),
        value=0.5,
        comment="(1/2 + 1/2) / 2 = 0.5.",
    ),
    differences=(_ONE_USABLE, _LABELS),
)
ASPECT_CRITIC = Guide(
    formula="1 if most of `strictness` votes say that the row meets the definition, else 0",
    notes=(
        (
            "The judge sees every text that the row has. Whether 1 is good depends on the definition, so the "
            "metric has no "
            "direction."
        ),
        "A vote that is neither 0 nor 1 has failed; the cell fails if failed votes could have changed the result.",
    ),
    example=Example(
        evidence=rate(_GROUNDED, "aspect_critic", "1", "0", "1"),
        parameters={"definition": "Does the response leave out what the contexts say?", "strictness": 3},
        value=1.0,
        comment="Two of three votes.",
    ),
    differences=(
        "The judge is really asked `strictness` times. The documents say so, but Ragas asks once, whatever it is.",
    ),
)
DISCRETE_CRITERIA = Guide(
    formula="the value that most of `strictness` votes give",
    notes=(
        "Give either a `definition` or a `prompt`. Categories (`allowed_values=[pass, fail]`) have counts, no mean.",
    ),
    example=Example(
        evidence=rate(_GROUNDED, "clarity", "4"),
        parameters={"definition": "How clear is the response?", "allowed_values": (1, 2, 3, 4, 5)},
        value=4.0,
        comment="One vote.",
    ),
    differences=(
        _SCALE,
        "A value that is not allowed is a failed vote; the metric of one version of Ragas accepts any.",
    ),
)
NUMERIC_CRITERIA = Guide(
    formula="the number that the judge gives",
    notes=("Give either a `definition` or a `prompt`.",),
    example=Example(
        evidence=rate(_GROUNDED, "clarity", 0.8),
        parameters={"definition": "How clear is the response?"},
        value=0.8,
        comment="A number in the range 0 to 1.",
    ),
    differences=("A number out of range fails the cell; Ragas returns it.",),
)
_RUBRIC = {"score0_description": "says nothing", "score0.5_description": "says when", "score1_description": "says all"}
RUBRICS = Guide(
    formula="the number of the description that the judge chooses",
    notes=("`rubrics` has one key per description, `score<number>_description`; fractions are allowed.", _SCALE),
    example=Example(
        evidence=rate(_GROUNDED, "rubrics", "0.5"),
        parameters={"rubrics": _RUBRIC},
        value=0.5,
        comment="The second of three descriptions fits best.",
    ),
    differences=(
        (
            "Only numbers of the rubric are possible, fractions too. In Ragas the score must be a whole number, "
            "which need "
            "not be on the scale; a document has a rubric with 0.5, which Ragas cannot return."
        ),
        "The judge's feedback is stored.",
    ),
)
INSTANCE_RUBRICS = Guide(
    formula="the number of the description that the judge chooses, from the rubric of the row",
    notes=("Rows with different scales are not averaged together: the summary has a mean per scale.",),
    example=Example(
        evidence=rate(Sample(user_input="When?", response="At nine.", rubrics=_RUBRIC), "instance_rubrics", "0.5"),
        value=0.5,
        comment="The second of three descriptions fits best.",
    ),
    differences=(
        (
            "A row without a rubric is undefined with that reason; the question goes to the judge unchanged. "
            "Ragas appends "
            "the contexts to it."
        ),
    ),
)

GUIDES = {
    "nv_accuracy": NV_ACCURACY,
    "nv_context_relevance": NV_CONTEXT_RELEVANCE,
    "nv_response_groundedness": NV_RESPONSE_GROUNDEDNESS,
    "aspect_critic": ASPECT_CRITIC,
    "discrete_criteria": DISCRETE_CRITERIA,
    "numeric_criteria": NUMERIC_CRITERIA,
    "rubrics": RUBRICS,
    "instance_rubrics": INSTANCE_RUBRICS,
}
