"""Context recall: the share of the reference that the retrieved contexts support."""

from collections.abc import Sequence

from metric_core import columns, reasons
from metric_core.evidence import ALL_CONTEXTS, Evidence
from metric_core.metric import Metric, MetricRequest, Parameter, Parameters, constant
from metric_core.metrics._supports import mean_support
from metric_core.records import Score, Side, Support
from metric_core.stages import Product

CLAIM, SENTENCE = "claim", "sentence"


def context_recall(supports: Sequence[Support], unit: str = CLAIM) -> Score:
    """Return the share of claims (or sentences) of the reference that the retrieved contexts support together.

    Source: Ragas documentation, Context Recall (claims); Sarkar, "Evaluating LLM and RAG Systems: Metrics", Context
    Recall (sentences).

    Args:
        supports: Support of each claim or sentence of the reference by all retrieved contexts, in [0, 1].
        unit: Unit of the supports, "claim" or "sentence".

    Returns:
        A score in [0, 1]; undefined (no claims, or no sentences, in the reference); failed (a verdict failed).

    The contexts say that France is in Western Europe, but not that its capital is Paris:

    >>> context_recall([1, 0]).value
    0.5
    """
    nothing = reasons.NO_REFERENCE_CLAIMS if unit == CLAIM else reasons.NO_REFERENCE_SENTENCES
    return mean_support(supports, Score.undefined(nothing))


def _products(parameters: Parameters) -> tuple[Product, ...]:
    by_claim = parameters["unit"] == CLAIM
    return (Product.REFERENCE_CLAIMS_BY_CONTEXTS if by_claim else Product.REFERENCE_SENTENCES_BY_CONTEXTS,)


def _compute(request: MetricRequest, evidence: Evidence) -> Score:
    unit = request.parameters["unit"]
    side = Side.REFERENCE if unit == CLAIM else Side.REFERENCE_SENTENCE
    return context_recall(evidence.supports(side, ALL_CONTEXTS, request.products[0]), unit)


CONTEXT_RECALL = Metric(
    name="context_recall",
    summary="Share of the claims of the reference that the retrieved contexts support.",
    source="Ragas documentation, Context Recall",
    family="context_recall",
    columns=constant(columns.RETRIEVED_CONTEXTS, columns.REFERENCE),
    products=_products,
    compute=_compute,
    undefined={
        reasons.NO_REFERENCE_CLAIMS: "the reference makes no claims",
        reasons.NO_REFERENCE_SENTENCES: "the reference is empty (unit = sentence)",
    },
    aliases=("llm_context_recall",),
    parameters={"unit": Parameter(summary="unit of the reference to count", default=CLAIM, choices=(CLAIM, SENTENCE))},
)
