"""Refusals: whether the system declines to answer exactly where the retrieved contexts hold no answer."""

from collections.abc import Sequence
from math import prod

from metric_core import columns, reasons
from metric_core.declarations.metric import Metric, MetricRequest, Parameters, constant
from metric_core.evidence import ALL_CONTEXTS, Evidence
from metric_core.metrics._supports import all_known
from metric_core.metrics._votes import exact_label
from metric_core.prompts.judge_questions import NO, YES, RatingRequest, ask_refusal
from metric_core.question_kinds import QuestionKind
from metric_core.records import Direction, Sample, Score, Side, Support
from metric_core.stages import Product

RESPONSE_ANSWERS, REFERENCE_ANSWERS = "response_answers", "reference_answers"
"""Names of the rating questions whether the response and the reference answer, instead of declining to."""

_SOURCE = (
    'Song et al., "Measuring and Enhancing Trustworthiness of LLMs in RAG through Grounded Attributions and Learning '
    'to Refuse" (2024), grounded refusals'
)
_UNLIKELY = 0.5


def answerability(reference_declines: bool, supports: Sequence[Support]) -> Support:
    """Return the probability that the contexts hold an answer: that they support a claim of the reference.

    Args:
        reference_declines: True if the reference says that the question has no answer.
        supports: Support of each claim of the reference by all retrieved contexts, in [0, 1].

    Returns:
        A probability, 0 or 1 for verdicts of 0 or 1; None if a failed verdict leaves it open.

    >>> answerability(False, [1, 0]), answerability(True, [1]), answerability(False, [0, None])
    (1.0, 0.0, None)
    """
    if reference_declines:
        return 0.0
    if any(support == 1 for support in supports):
        return 1.0
    known = all_known(supports)
    return None if known is None else 1.0 - prod(1 - support for support in known)


def abstention_accuracy(declines: bool, answerable: float) -> Score:
    """Return whether the response declines exactly if the contexts hold no answer.

    Source: Song et al. (2024), grounded refusals: a question is answerable if the contexts support a claim of the
    reference.

    Args:
        answerable: Probability that the contexts hold an answer; see `answerability`.

    Returns:
        A score in [0, 1]: 1 if the decision to answer or to decline is right.

    >>> abstention_accuracy(True, 0.0).value, abstention_accuracy(True, 1.0).value
    (1.0, 0.0)
    """
    return Score.scored(1.0 - answerable if declines else answerable)


def over_refusal(declines: bool, answerable: float) -> Score:
    """Return whether the response declines although the contexts hold an answer; lower is better.

    Source: Song et al. (2024), grounded refusals.

    Args:
        answerable: Probability that the contexts hold an answer; see `answerability`.

    Returns:
        0 or 1; undefined (the contexts hold no answer, so that declining is right).

    >>> over_refusal(True, 1.0).value, over_refusal(False, 1.0).value, over_refusal(True, 0.0).reason
    (1.0, 0.0, 'no answer in the contexts')
    """
    if answerable < _UNLIKELY:
        return Score.undefined(reasons.NO_ANSWER_IN_CONTEXTS)
    return Score.scored(float(declines))


def _questions(sample: Sample, _: Parameters) -> list[RatingRequest] | Score:
    response, reference = sample.response or "", sample.reference or ""
    blank = _blank(response, reference)
    if blank is not None:
        return blank
    texts = {RESPONSE_ANSWERS: response, REFERENCE_ANSWERS: reference}
    return [RatingRequest(name, ask_refusal(sample.user_input or "", text)) for name, text in texts.items()]


def _blank(response: str, reference: str) -> Score | None:
    """Return the score of a row without a response or a reference: an empty response declines nothing."""
    texts = {columns.RESPONSE: response, columns.REFERENCE: reference}
    empty = next((column for column, text in texts.items() if not text.strip()), None)
    return None if empty is None else Score.undefined(reasons.empty_column(empty))


def _decide(request: MetricRequest, evidence: Evidence) -> tuple[bool, float] | Score:
    """Return whether the response declines and how answerable the question is, or the score of a row without both."""
    blank = _blank(evidence.column(columns.RESPONSE), evidence.column(columns.REFERENCE))
    if blank is not None:
        return blank
    labels = {rating.template: exact_label(rating.value, (YES, NO)) for rating in evidence.ratings_of(request.key)}
    response, reference = labels.get(RESPONSE_ANSWERS), labels.get(REFERENCE_ANSWERS)
    if response is None or reference is None:
        return Score.failed(reasons.NO_USABLE_RATING)
    supports = evidence.supports(Side.REFERENCE, ALL_CONTEXTS, Product.REFERENCE_CLAIMS_BY_CONTEXTS)
    if reference == YES and not supports:
        return Score.undefined(reasons.NO_REFERENCE_CLAIMS)
    answerable = answerability(reference == NO, supports)
    return Score.failed(reasons.NO_USABLE_VERDICT) if answerable is None else (response == NO, answerable)


def _abstention_accuracy(request: MetricRequest, evidence: Evidence) -> Score:
    decided = _decide(request, evidence)
    return decided if isinstance(decided, Score) else abstention_accuracy(*decided)


def _over_refusal(request: MetricRequest, evidence: Evidence) -> Score:
    decided = _decide(request, evidence)
    return decided if isinstance(decided, Score) else over_refusal(*decided)


_UNDEFINED = {
    reasons.NO_REFERENCE_CLAIMS: "the reference makes no claims and does not say that there is no answer",
    reasons.empty_column(columns.RESPONSE): "the response is empty",
    reasons.empty_column(columns.REFERENCE): "the reference is empty",
}

ABSTENTION_ACCURACY = Metric(
    name="abstention_accuracy",
    summary="Whether the response declines to answer exactly where the retrieved contexts hold no answer.",
    question="Does the answer decline exactly if it should?",
    source=_SOURCE,
    family="refusals",
    columns=constant(columns.USER_INPUT, columns.RESPONSE, columns.RETRIEVED_CONTEXTS, columns.REFERENCE),
    products=constant(Product.RATINGS, Product.REFERENCE_CLAIMS_BY_CONTEXTS),
    compute=_abstention_accuracy,
    undefined=_UNDEFINED,
    ratings=_questions,
    question_kinds=(QuestionKind.REFUSAL,),
    in_default_suite=False,
)

OVER_REFUSAL = Metric(
    name="over_refusal",
    summary="Whether the response declines although the retrieved contexts hold an answer; lower is better.",
    question="Does the answer decline although the question can be answered?",
    source=_SOURCE,
    family="refusals",
    columns=constant(columns.USER_INPUT, columns.RESPONSE, columns.RETRIEVED_CONTEXTS, columns.REFERENCE),
    products=constant(Product.RATINGS, Product.REFERENCE_CLAIMS_BY_CONTEXTS),
    compute=_over_refusal,
    direction=Direction.LOWER,
    undefined=_UNDEFINED | {reasons.NO_ANSWER_IN_CONTEXTS: "declining is right where the contexts hold no answer"},
    ratings=_questions,
    question_kinds=(QuestionKind.REFUSAL,),
    in_default_suite=False,
)
