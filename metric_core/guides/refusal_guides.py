"""Guides to the metrics of refusals."""

from metric_core.evidence import ALL_CONTEXTS, Evidence
from metric_core.guides.guide import Example, Guide, judge
from metric_core.judge_questions import NO, YES
from metric_core.metrics.refusals import OF_REFERENCE, OF_RESPONSE
from metric_core.records import Rating, Sample, Side

_DECLINED = Sample(
    user_input="When does the shop open?",
    response="I could not find anything about this.",
    retrieved_contexts=("The shop opens at nine.",),
    reference="The shop opens at nine.",
)


def _judged(metric: str) -> Evidence:
    """Return the evidence of a row that declines although its passage holds the answer."""
    ratings = {metric: [Rating(OF_RESPONSE, YES), Rating(OF_REFERENCE, NO)]}
    return judge(_DECLINED, {Side.REFERENCE: {"The shop opens at nine.": {ALL_CONTEXTS: 1.0}}}, ratings=ratings)


_NOTES = (
    (
        "The judge is asked whether the response declines to answer, and whether the reference does. The packaged "
        "judge recognizes refusals by forms in twelve languages; a language model recognizes more."
    ),
    (
        "The contexts hold an answer if they support a claim of the reference. They hold none if the reference itself "
        "says that there is no answer."
    ),
)

ABSTENTION_ACCURACY = Guide(
    formula=(
        "answerable = 1 if the contexts support a claim of the reference, else 0\n"
        "score = 1 - answerable if the response declines, else answerable"
    ),
    notes=_NOTES,
    example=Example(
        evidence=_judged("abstention_accuracy"), value=0.0, comment="It declines, and the context has the answer."
    ),
    differences=(
        (
            "Ragas has no metric of refusals. Song et al. report an F1 over all rows; here each row has a score, so "
            "that means have intervals and runs can be compared row by row."
        ),
    ),
)
OVER_REFUSAL = Guide(
    formula="1 if the response declines, else 0, over the rows whose contexts hold an answer",
    notes=("Lower is better: means, gates, comparisons and colors take that into account.", *_NOTES),
    example=Example(
        evidence=_judged("over_refusal"), value=1.0, comment="It declines, and the context has the answer."
    ),
    differences=("Ragas has no metric of refusals. Rows on which declining is right do not count.",),
)

GUIDES = {"abstention_accuracy": ABSTENTION_ACCURACY, "over_refusal": OVER_REFUSAL}
