"""Context relevancy: the share of retrieved sentences that help to answer the user question."""

from collections.abc import Sequence

from metric_core import columns
from metric_core.declarations.metric import Metric, MetricRequest, constant
from metric_core.evidence import Evidence
from metric_core.metrics._supports import mean_support
from metric_core.records import Score, Support
from metric_core.stages import Product


def context_relevancy(relevance: Sequence[Support]) -> Score:
    """Return the share of sentences of the retrieved contexts that are relevant to the user question.

    Source: Sarkar, "Evaluating LLM and RAG Systems: Metrics", Context Relevancy.

    Args:
        relevance: Relevance of each context sentence, in [0, 1].

    Returns:
        A score in [0, 1], 0 without sentences; failed (a verdict failed).

    One of two sentences about France names the capital; two more about its wines and caves do not help:

    >>> context_relevancy([0, 1]).value, context_relevancy([0, 1, 0, 0]).value
    (0.5, 0.25)
    """
    return mean_support(relevance, Score.scored(0.0))


def _compute(_: MetricRequest, evidence: Evidence) -> Score:
    return context_relevancy(evidence.relevance())


CONTEXT_RELEVANCY = Metric(
    name="context_relevancy",
    summary="Share of the retrieved sentences that help to answer the user question.",
    question="Do most sentences of the passages help to answer the question?",
    source='Sarkar, "Evaluating LLM and RAG Systems: Metrics", Context Relevancy',
    family="context_relevancy",
    columns=constant(columns.USER_INPUT, columns.RETRIEVED_CONTEXTS),
    products=constant(Product.SENTENCE_RELEVANCE),
    compute=_compute,
    undefined={},
)
