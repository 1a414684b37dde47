"""Context precision: average precision of the retrieved contexts, which is 1 if all useful ones are ranked first."""

from collections.abc import Sequence
from itertools import accumulate
from math import fsum

from metric_core import columns, reasons
from metric_core.declarations.metric import Metric, MetricRequest, constant
from metric_core.evidence import Evidence
from metric_core.metrics._supports import all_known
from metric_core.records import Score, Status, Support, VerdictKind
from metric_core.refusals.refusal_forms import declines
from metric_core.stages import Product

_SOURCE = 'Sarkar, "Evaluating LLM and RAG Systems: Metrics", Context Precision'


def relevance_average_precision(relevance: Sequence[float]) -> float:
    """Return the average precision over the relevant ranks, in [0, 1]; 0 if nothing is relevant.

    For 0/1 relevance, this is the mean of precision@k over the relevant ranks k. For probabilities, it is the exact
    expectation of that mean if ranks are relevant independently of each other, computed from the distributions of the
    number of relevant ranks before and after each rank (O(n³)).

    Args:
        relevance: Relevance of each rank, best rank first, in [0, 1].

    >>> relevance_average_precision([0, 1, 1])
    0.5833333333333333
    >>> relevance_average_precision([0.5, 0.5])  # outcomes 00, 01, 10, 11: (0 + 0.5 + 1 + 1) / 4
    0.625
    """
    before = list(accumulate(relevance, _add_rank, initial=[1.0]))
    after = list(accumulate(reversed(relevance), _add_rank, initial=[1.0]))[::-1]
    return fsum(
        relevance[k] * p * q * (above + 1) / (k + 1) / (above + 1 + below)
        for k in range(len(relevance))
        if relevance[k]
        for above, p in enumerate(before[k])
        if p
        for below, q in enumerate(after[k + 1])
        if q
    )


def context_precision(relevance: Sequence[Support]) -> Score:
    """Return the average precision of the retrieved contexts.

    Source: Sarkar, "Evaluating LLM and RAG Systems: Metrics", Context Precision.

    Args:
        relevance: Relevance of each context, best rank first, in [0, 1].

    Returns:
        A score in [0, 1], 0 if no context is relevant; undefined (no retrieved contexts); failed (a verdict failed).

    Only the second of two passages says where France is and names its capital:

    >>> context_precision([0, 1]).value
    0.5
    """
    if not relevance:
        return Score.undefined(reasons.NO_CONTEXTS)
    known = all_known(relevance)
    if known is None:
        return Score.failed(reasons.NO_USABLE_VERDICT)
    return Score.scored(min(relevance_average_precision(known), 1.0))


def _add_rank(distribution: list[float], p: float) -> list[float]:
    """Return the distribution of the number of relevant ranks after adding one rank of relevance p."""
    stays = [share * (1 - p) for share in distribution]
    grows = [share * p for share in distribution]
    return [a + b for a, b in zip([*stays, 0.0], [0.0, *grows], strict=True)]


def _for_reference(_: MetricRequest, evidence: Evidence) -> Score:
    return _precision_for(columns.REFERENCE, evidence, VerdictKind.USEFULNESS_FOR_REFERENCE)


def _for_response(_: MetricRequest, evidence: Evidence) -> Score:
    return _precision_for(columns.RESPONSE, evidence, VerdictKind.USEFULNESS_FOR_RESPONSE)


def _precision_for(column: str, evidence: Evidence, kind: VerdictKind) -> Score:
    score = context_precision(evidence.usefulness(kind))
    if score.status is Status.SCORED and declines(evidence.column(column)):
        return Score.undefined(reasons.declining_column(column))
    return score


CONTEXT_PRECISION = Metric(
    name="context_precision",
    summary="Whether the contexts that help to arrive at the reference are ranked first.",
    question="Do the passages that help to arrive at the reference come first?",
    source=_SOURCE,
    family="context_precision",
    columns=constant(columns.USER_INPUT, columns.RETRIEVED_CONTEXTS, columns.REFERENCE),
    products=constant(Product.USEFULNESS_FOR_REFERENCE),
    compute=_for_reference,
    undefined={
        reasons.NO_CONTEXTS: "nothing was retrieved",
        reasons.declining_column(columns.REFERENCE): "the reference says that there is no answer: no context can help",
    },
    aliases=("llm_context_precision_with_reference",),
)

CONTEXT_UTILIZATION = Metric(
    name="context_utilization",
    summary="Whether the contexts that help to arrive at the response are ranked first; needs no reference.",
    question="Do the passages that help to arrive at the answer come first?",
    source=_SOURCE,
    family="context_precision",
    columns=constant(columns.USER_INPUT, columns.RETRIEVED_CONTEXTS, columns.RESPONSE),
    products=constant(Product.USEFULNESS_FOR_RESPONSE),
    compute=_for_response,
    undefined={
        reasons.NO_CONTEXTS: "nothing was retrieved",
        reasons.declining_column(columns.RESPONSE): "the response declines to answer: no context was used",
    },
    aliases=("context_precision_without_reference", "llm_context_precision_without_reference"),
)
