"""Answer similarity: similarity of response and reference in meaning, by an embedder or a cross-encoder."""

from metric_core import columns, reasons
from metric_core.declarations.metric import Metric, MetricRequest, Parameter, Parameters, constant
from metric_core.declarations.parameter_checks import allow_none, require_number_in
from metric_core.evidence import Evidence
from metric_core.records import Score
from metric_core.stages import Product

BI, CROSS = "bi", "cross"


def answer_similarity(similarity: float | None, threshold: float | None = None) -> Score:
    """Return the similarity of response and reference, or 1 or 0 depending on whether it reaches a threshold.

    Source: Sarkar, "Evaluating LLM and RAG Systems: Metrics", Answer semantic similarity.

    Args:
        similarity: Cosine of the two embeddings in [-1, 1], or the score of a cross-encoder in [0, 1]; None for a
            zero vector.
        threshold: Least similarity that scores 1; None for no threshold.

    Returns:
        The similarity, not clamped, or 0 or 1 with a threshold; undefined (zero vector).

    >>> answer_similarity(0.6).value, answer_similarity(0.6, threshold=0.7).value
    (0.6, 0.0)
    """
    if similarity is None:
        return Score.undefined(reasons.ZERO_VECTOR)
    return Score.scored(similarity if threshold is None else similarity >= threshold)


def _products(parameters: Parameters) -> tuple[Product, ...]:
    by_cross_encoder = parameters["encoder"] == CROSS
    return (Product.ANSWER_SIMILARITY_BY_CROSS_ENCODER if by_cross_encoder else Product.ANSWER_SIMILARITY,)


def _bounds(parameters: Parameters) -> tuple[float, float]:
    may_be_negative = parameters["encoder"] == BI and parameters["threshold"] is None
    return (-1.0 if may_be_negative else 0.0, 1.0)


def _compute(request: MetricRequest, evidence: Evidence) -> Score:
    return answer_similarity(evidence.answer_similarity(request.products[0]), request.parameters["threshold"])


ANSWER_SIMILARITY = Metric(
    name="answer_similarity",
    summary="Similarity of response and reference in meaning; needs no judge.",
    question="Do answer and reference mean the same?",
    source='Sarkar, "Evaluating LLM and RAG Systems: Metrics", Answer semantic similarity',
    family="answer_similarity",
    columns=constant(columns.RESPONSE, columns.REFERENCE),
    products=_products,
    compute=_compute,
    bounds=_bounds,
    undefined={reasons.ZERO_VECTOR: "the embedding of one of the texts is a zero vector"},
    aliases=("semantic_similarity", "answer_semantic_similarity"),
    parameters={
        "threshold": Parameter(
            summary="least similarity that scores 1, lower ones score 0; unset: the similarity itself",
            check=allow_none(require_number_in(-1, 1)),
        ),
        "encoder": Parameter(
            summary="bi compares two embeddings, cross reads both texts together", default=BI, choices=(BI, CROSS)
        ),
    },
)
