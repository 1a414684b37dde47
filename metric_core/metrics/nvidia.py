"""Ratings by two prompts, after NVIDIA: answer accuracy, context relevance and response groundedness.

Each rating is asked for by two independent prompts; the score is the mean of the usable ratings.
"""

from collections.abc import Sequence
from statistics import fmean

from metric_core import columns, reasons
from metric_core.declarations.metric import Metric, MetricRequest, Parameters, constant
from metric_core.evidence import Evidence
from metric_core.metrics._votes import exact_label
from metric_core.prompts.judge_questions import (
    CONTEXTS,
    REFERENCE,
    RESPONSE,
    USER_INPUT,
    ChoiceQuestion,
    RatingRequest,
    texts_of,
)
from metric_core.question_kinds import QuestionKind
from metric_core.records import Sample, Score
from metric_core.stages import Product

ACCURACY_LABELS = ("0", "2", "4")
RELEVANCE_LABELS = GROUNDEDNESS_LABELS = ("0", "1", "2")


def mean_rating(ratings: Sequence[str | float | None], labels: Sequence[str]) -> Score:
    """Return the mean of the usable ratings, each divided by the highest label of the scale.

    Source: Ragas documentation, Nvidia Metrics.

    Args:
        ratings: One rating per prompt; a rating that does not equal a label of the scale is unusable.
        labels: Labels of the scale, in ascending order from 0.

    Returns:
        A score in [0, 1]; failed (no usable rating).

    >>> mean_rating(["4", "4"], ("0", "2", "4")).value, mean_rating(["4", "2"], ("0", "2", "4")).value
    (1.0, 0.75)
    >>> mean_rating(["no idea", "2"], ("0", "2", "4")).value
    0.5
    """
    valid = [float(label) for rating in ratings if (label := exact_label(rating, labels)) is not None]
    return Score.scored(fmean(valid) / float(labels[-1])) if valid else Score.failed(reasons.NO_USABLE_RATING)


def context_relevance_shortcut(user_input: str, contexts: str) -> Score | None:
    """Return the score of contexts that need no judge: 0 if a side is blank or the question contains the contexts.

    Source: Ragas, Context Relevance.

    >>> context_relevance_shortcut("Was he born in Ulm?", "born in Ulm").value
    0.0
    """
    question, passages = user_input.strip(), contexts.strip()
    return Score.scored(0.0) if not question or passages in question else None


def groundedness_shortcut(response: str, contexts: str) -> Score | None:
    """Return the score of a response that needs no judge: 0 if a side is blank, 1 if the contexts contain it verbatim.

    Source: Ragas, Response Groundedness.

    >>> groundedness_shortcut("born in Ulm", "He was born in Ulm in 1879.").value
    1.0
    """
    answer, passages = response.strip(), contexts.strip()
    if not answer or not passages:
        return Score.scored(0.0)
    return Score.scored(1.0) if answer in passages else None


def _rating_requests(labels: tuple[str, ...], texts: dict[QuestionKind, dict[str, str]]) -> list[RatingRequest]:
    return [RatingRequest(str(kind), ChoiceQuestion(kind, by_role, labels)) for kind, by_role in texts.items()]


def _accuracy_questions(sample: Sample, _: Parameters) -> list[RatingRequest]:
    straight = texts_of(sample, (columns.USER_INPUT, columns.RESPONSE, columns.REFERENCE))
    swapped = straight | {RESPONSE: straight[REFERENCE], REFERENCE: straight[RESPONSE]}
    return _rating_requests(ACCURACY_LABELS, {QuestionKind.ACCURACY_1: straight, QuestionKind.ACCURACY_2: swapped})


def _relevance_questions(sample: Sample, _: Parameters) -> list[RatingRequest] | Score:
    texts = texts_of(sample, (columns.RETRIEVED_CONTEXTS, columns.USER_INPUT))
    kinds = (QuestionKind.CONTEXT_RELEVANCE_1, QuestionKind.CONTEXT_RELEVANCE_2)
    shortcut = context_relevance_shortcut(texts[USER_INPUT], texts[CONTEXTS])
    return _rating_requests(RELEVANCE_LABELS, dict.fromkeys(kinds, texts)) if shortcut is None else shortcut


def _groundedness_questions(sample: Sample, _: Parameters) -> list[RatingRequest] | Score:
    texts = {CONTEXTS: sample.joined_sources} | texts_of(sample, (columns.RESPONSE,))
    kinds = (QuestionKind.GROUNDEDNESS_1, QuestionKind.GROUNDEDNESS_2)
    shortcut = groundedness_shortcut(texts[RESPONSE], texts[CONTEXTS])
    return _rating_requests(GROUNDEDNESS_LABELS, dict.fromkeys(kinds, texts)) if shortcut is None else shortcut


def _mean(request: MetricRequest, evidence: Evidence, labels: Sequence[str]) -> Score:
    return mean_rating([rating.value for rating in evidence.ratings_of(request.key)], labels)


def _accuracy(request: MetricRequest, evidence: Evidence) -> Score:
    return _mean(request, evidence, ACCURACY_LABELS)


def _relevance(request: MetricRequest, evidence: Evidence) -> Score:
    shortcut = context_relevance_shortcut(evidence.column(columns.USER_INPUT), evidence.sample.joined_contexts)
    return _mean(request, evidence, RELEVANCE_LABELS) if shortcut is None else shortcut


def _groundedness(request: MetricRequest, evidence: Evidence) -> Score:
    shortcut = groundedness_shortcut(evidence.column(columns.RESPONSE), evidence.sample.joined_sources)
    return _mean(request, evidence, GROUNDEDNESS_LABELS) if shortcut is None else shortcut


NV_ACCURACY = Metric(
    name="nv_accuracy",
    summary="Agreement of response and reference, rated 0, 2 or 4 by two prompts.",
    question="Do answer and reference say the same?",
    source="Ragas documentation, Answer Accuracy",
    family="nvidia",
    columns=constant(columns.USER_INPUT, columns.RESPONSE, columns.REFERENCE),
    products=constant(Product.RATINGS),
    compute=_accuracy,
    undefined={reasons.NEEDS_LANGUAGE_MODEL: "the judge is not a language model"},
    aliases=("answer_accuracy",),
    ratings=_accuracy_questions,
    question_kinds=(QuestionKind.ACCURACY_1, QuestionKind.ACCURACY_2),
    language_model=True,
)

NV_CONTEXT_RELEVANCE = Metric(
    name="nv_context_relevance",
    summary="Relevance of the retrieved contexts to the user question, rated 0, 1 or 2 by two prompts.",
    question="Are the passages about the question?",
    source="Ragas documentation, Context Relevance",
    family="nvidia",
    columns=constant(columns.USER_INPUT, columns.RETRIEVED_CONTEXTS),
    products=constant(Product.RATINGS),
    compute=_relevance,
    undefined={reasons.NEEDS_LANGUAGE_MODEL: "the judge is not a language model"},
    aliases=("context_relevance",),
    ratings=_relevance_questions,
    question_kinds=(QuestionKind.CONTEXT_RELEVANCE_1, QuestionKind.CONTEXT_RELEVANCE_2),
    language_model=True,
)

NV_RESPONSE_GROUNDEDNESS = Metric(
    name="nv_response_groundedness",
    summary="Groundedness of the response in the retrieved contexts, rated 0, 1 or 2 by two prompts.",
    question="Is all that the answer says in the passages?",
    source="Ragas documentation, Response Groundedness",
    family="nvidia",
    columns=constant(columns.RESPONSE, columns.RETRIEVED_CONTEXTS),
    optional_columns=constant(columns.EARLIER_CONTEXTS, columns.TOOL_RESULTS),
    stand_ins={columns.RETRIEVED_CONTEXTS: (columns.EARLIER_CONTEXTS, columns.TOOL_RESULTS)},
    products=constant(Product.RATINGS),
    compute=_groundedness,
    undefined={reasons.NEEDS_LANGUAGE_MODEL: "the judge is not a language model"},
    aliases=("response_groundedness",),
    ratings=_groundedness_questions,
    question_kinds=(QuestionKind.GROUNDEDNESS_1, QuestionKind.GROUNDEDNESS_2),
    language_model=True,
)
