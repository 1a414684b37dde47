"""Faithfulness: the share of claims of the response that the retrieved contexts support."""

from collections.abc import Sequence

from metric_core import columns, reasons
from metric_core.declarations.metric import Metric, MetricRequest, constant
from metric_core.evidence import ALL_CONTEXTS, Evidence
from metric_core.metrics._supports import mean_support
from metric_core.records import Score, Side, Support
from metric_core.stages import Product


def faithfulness(supports: Sequence[Support]) -> Score:
    """Return the share of response claims that the retrieved contexts support together.

    In a conversation, contexts of earlier questions and results of tools count too, earlier answers do not.

    Source: Sarkar, "Evaluating LLM and RAG Systems: Metrics", Faithfulness.

    Args:
        supports: Support of each response claim by all retrieved contexts, in [0, 1].

    Returns:
        A score in [0, 1]; undefined (no claims in the response); failed (a verdict failed).

    The context supports "Einstein was born in Germany", but not "Einstein was born on 20th March 1879":

    >>> faithfulness([1, 0]).value
    0.5
    """
    return mean_support(supports, Score.undefined(reasons.NO_RESPONSE_CLAIMS))


def _compute(_: MetricRequest, evidence: Evidence) -> Score:
    return faithfulness(evidence.supports(Side.RESPONSE, ALL_CONTEXTS, Product.RESPONSE_CLAIMS_BY_CONTEXTS))


FAITHFULNESS = Metric(
    name="faithfulness",
    summary="Share of the claims of the response that the retrieved contexts support.",
    question="Do the passages support all that the answer claims?",
    source='Sarkar, "Evaluating LLM and RAG Systems: Metrics", Faithfulness',
    family="faithfulness",
    columns=constant(columns.RESPONSE, columns.RETRIEVED_CONTEXTS),
    optional_columns=constant(columns.EARLIER_CONTEXTS, columns.TOOL_RESULTS),
    stand_ins={columns.RETRIEVED_CONTEXTS: (columns.EARLIER_CONTEXTS, columns.TOOL_RESULTS)},
    products=constant(Product.RESPONSE_CLAIMS_BY_CONTEXTS),
    compute=_compute,
    undefined={reasons.NO_RESPONSE_CLAIMS: "the response makes no claims"},
)
