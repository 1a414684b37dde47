"""Context sufficiency: whether the question can be answered from the retrieved contexts alone."""

from metric_core import columns, reasons
from metric_core.declarations.metric import Metric, MetricRequest, Parameters, constant
from metric_core.evidence import Evidence
from metric_core.metrics._votes import exact_label
from metric_core.prompts.judge_questions import YES, YES_NO, ChoiceQuestion, RatingRequest, texts_of
from metric_core.question_kinds import QuestionKind
from metric_core.records import Sample, Score
from metric_core.stages import Product

OF_CONTEXTS = "sufficiency_of_contexts"
"""Name of the rating question whether the retrieved contexts suffice."""


def context_sufficiency(rating: str | float | None) -> Score:
    """Return 1 if the contexts suffice to answer the question, else 0.

    Source: Joren et al., "Sufficient Context: A New Lens on Retrieval Augmented Generation Systems" (2024).

    Args:
        rating: Answer of the judge; None if it gave none.

    Returns:
        0 or 1; failed (no usable rating).

    >>> context_sufficiency("yes").value, context_sufficiency("no").value, context_sufficiency("partly").reason
    (1.0, 0.0, 'no usable rating from the judge')
    """
    label = exact_label(rating, YES_NO)
    return Score.failed(reasons.NO_USABLE_RATING) if label is None else Score.scored(float(label == YES))


def _questions(sample: Sample, _: Parameters) -> list[RatingRequest] | Score:
    texts = texts_of(sample, (columns.USER_INPUT, columns.RETRIEVED_CONTEXTS))
    if not all(text.strip() for text in texts.values()):
        return Score.scored(0.0)
    return [RatingRequest(OF_CONTEXTS, ChoiceQuestion(QuestionKind.SUFFICIENCY, texts, YES_NO))]


def _compute(request: MetricRequest, evidence: Evidence) -> Score:
    if not evidence.column(columns.USER_INPUT).strip() or not evidence.sample.joined_contexts.strip():
        return Score.scored(0.0)
    return context_sufficiency(next((rating.value for rating in evidence.ratings_of(request.key)), None))


CONTEXT_SUFFICIENCY = Metric(
    name="context_sufficiency",
    summary="Whether a careful reader could answer the question from the retrieved contexts alone.",
    question="Could a careful reader answer the question from the passages alone?",
    source="Joren et al. 2024, Sufficient Context: A New Lens on Retrieval Augmented Generation Systems",
    family="context_sufficiency",
    columns=constant(columns.USER_INPUT, columns.RETRIEVED_CONTEXTS),
    products=constant(Product.RATINGS),
    compute=_compute,
    undefined={reasons.NEEDS_LANGUAGE_MODEL: "the judge is not a language model"},
    ratings=_questions,
    question_kinds=(QuestionKind.SUFFICIENCY,),
    language_model=True,
    in_default_suite=False,
)
