"""Context recall: the share of the reference that the retrieved contexts support."""

from collections.abc import Sequence

from metric_core import columns, reasons
from metric_core.declarations.metric import Metric, MetricRequest, Parameter, Parameters
from metric_core.evidence import ALL_CONTEXTS, Evidence
from metric_core.metrics._supports import mean_support
from metric_core.records import Score, Side, Support
from metric_core.stages import Product

CLAIM, SENTENCE = "claim", "sentence"
REFERENCE, REFERENCE_CONTEXTS, KEY_POINTS = "reference", "reference_contexts", "key_points"

_SOURCES = {
    (REFERENCE, CLAIM): (Side.REFERENCE, Product.REFERENCE_CLAIMS_BY_CONTEXTS, reasons.NO_REFERENCE_CLAIMS),
    (REFERENCE, SENTENCE): (
        Side.REFERENCE_SENTENCE,
        Product.REFERENCE_SENTENCES_BY_CONTEXTS,
        reasons.NO_REFERENCE_SENTENCES,
    ),
    (REFERENCE_CONTEXTS, CLAIM): (
        Side.REFERENCE_CONTEXT,
        Product.REFERENCE_CONTEXT_CLAIMS_BY_CONTEXTS,
        reasons.NO_REFERENCE_CONTEXT_CLAIMS,
    ),
    (KEY_POINTS, CLAIM): (Side.KEY_POINT, Product.KEY_POINTS_BY_CONTEXTS, reasons.NO_KEY_POINTS),
}
"""Source and unit of the claims -> their side, the product with their verdicts, and the reason if there are none."""


def context_recall(supports: Sequence[Support], nothing: str = reasons.NO_REFERENCE_CLAIMS) -> Score:
    """Return the share of claims (or sentences) of the reference that the retrieved contexts support together.

    Source: Ragas documentation, Context Recall (claims of the reference or of reference contexts); Sarkar, "Evaluating
    LLM and RAG Systems: Metrics", Context Recall (sentences of the reference).

    Args:
        supports: Support of each claim or sentence by all retrieved contexts, in [0, 1].
        nothing: Reason of the undefined cell if there are none.

    Returns:
        A score in [0, 1]; undefined (no claims, or no sentences); failed (a verdict failed).

    The contexts say that France is in Western Europe, but not that its capital is Paris:

    >>> context_recall([1, 0]).value
    0.5
    """
    return mean_support(supports, Score.undefined(nothing))


def _columns(parameters: Parameters) -> tuple[str, ...]:
    return (columns.RETRIEVED_CONTEXTS, parameters["of"])


def _products(parameters: Parameters) -> tuple[Product, ...]:
    return (_SOURCES[parameters["of"], parameters["unit"]][1],)


def _compute(request: MetricRequest, evidence: Evidence) -> Score:
    of, unit = request.parameters["of"], request.parameters["unit"]
    if of == REFERENCE_CONTEXTS and not evidence.column(columns.REFERENCE_CONTEXTS):
        return Score.undefined(reasons.NO_REFERENCE_CONTEXTS)
    side, product, nothing = _SOURCES[of, unit]
    return context_recall(evidence.supports(side, ALL_CONTEXTS, product), nothing)


def _check(parameters: Parameters) -> str | None:
    known = (parameters["of"], parameters["unit"]) in _SOURCES
    return None if known else f"unit = 'claim' for of = {parameters['of']!r}, which is not counted by sentences"


CONTEXT_RECALL = Metric(
    name="context_recall",
    summary="Share of the claims of the reference that the retrieved contexts support.",
    question="Do the passages support all that the reference says?",
    source="Ragas documentation, Context Recall",
    family="context_recall",
    columns=_columns,
    products=_products,
    compute=_compute,
    undefined={
        reasons.NO_REFERENCE_CLAIMS: "the reference makes no claims",
        reasons.NO_REFERENCE_SENTENCES: "the reference is empty (unit = sentence)",
        reasons.NO_REFERENCE_CONTEXTS: "there are no reference contexts (of = reference_contexts)",
        reasons.NO_REFERENCE_CONTEXT_CLAIMS: "the reference contexts make no claims (of = reference_contexts)",
        reasons.NO_KEY_POINTS: "the row has no key points (of = key_points)",
    },
    aliases=("llm_context_recall",),
    parameters={
        "unit": Parameter(summary="unit of the reference to count", default=CLAIM, choices=(CLAIM, SENTENCE)),
        "of": Parameter(
            summary="what the contexts should support: the claims of a text, or the key points given with the data",
            default=REFERENCE,
            choices=(REFERENCE, REFERENCE_CONTEXTS, KEY_POINTS),
        ),
    },
    check=_check,
)
