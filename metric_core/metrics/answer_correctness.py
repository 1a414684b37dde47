"""Answer correctness: a weighted mean of factual overlap (F-beta over claims) and similarity of meaning."""

import math
from collections.abc import Sequence
from typing import Any

from metric_core import columns, reasons
from metric_core.declarations.metric import Metric, MetricRequest, Parameter, Parameters, constant
from metric_core.declarations.parameter_checks import require_number_in
from metric_core.evidence import BY_REFERENCE, BY_RESPONSE, Evidence
from metric_core.metrics._supports import all_known, count_supported, f_beta
from metric_core.records import Score, Side, Support
from metric_core.stages import Product


def answer_correctness(
    response_by_reference: Sequence[Support],
    reference_by_response: Sequence[Support],
    similarity: float | None,
    weights: Sequence[float] = (0.75, 0.25),
    beta: float = 1.0,
) -> Score:
    """Return the weighted mean of the F-beta of claims and the similarity of response and reference.

    True positives are the response claims that the reference supports, false positives the other response claims,
    false negatives the reference claims that the response does not support. If neither side has claims, F is 1.
    Probabilities give expected counts. A part with weight 0 is ignored.

    Source: Sarkar, "Evaluating LLM and RAG Systems: Metrics", Answer Correctness; F-beta from the Ragas documentation,
    Answer Correctness.

    Args:
        response_by_reference: Support of each response claim by the reference, in [0, 1].
        reference_by_response: Support of each reference claim by the response, in [0, 1].
        similarity: Cosine of response and reference in [-1, 1]; None for a zero vector.
        weights: Weights of F-beta and similarity, at least 0 and not both 0; normalized by their sum.
        beta: Weight of recall relative to precision.

    Returns:
        A score in [-w, 1] with w the normalized weight of the similarity; undefined (zero vector); failed (a verdict
        failed).

    Einstein was born in Germany in 1879; the response says in Spain in 1879, with similarity 0.8:

    >>> answer_correctness([0, 1], [0, 1], similarity=0.8).value
    0.575
    """
    factual = 0.0
    if weights[0]:
        response, reference = all_known(response_by_reference), all_known(reference_by_response)
        if response is None or reference is None:
            return Score.failed(reasons.NO_USABLE_VERDICT)
        (right, wrong), (_, missed) = count_supported(response), count_supported(reference)
        factual = f_beta(right, wrong, missed, beta) if response or reference else 1.0
    if weights[1] and similarity is None:
        return Score.undefined(reasons.ZERO_VECTOR)
    parts = weights[0] * factual + weights[1] * (similarity or 0.0)
    return Score.scored(parts / sum(weights))


def _products(parameters: Parameters) -> tuple[Product, ...]:
    factual, similar = parameters["weights"]
    overlap = (Product.RESPONSE_CLAIMS_BY_REFERENCE, Product.REFERENCE_CLAIMS_BY_RESPONSE)
    return (*(overlap if factual else ()), *((Product.ANSWER_SIMILARITY,) if similar else ()))


def _bounds(parameters: Parameters) -> tuple[float, float]:
    factual, similar = parameters["weights"]
    return (-similar / (factual + similar) if similar else 0.0, 1.0)


def _compute(request: MetricRequest, evidence: Evidence) -> Score:
    parameters, products = request.parameters, request.products
    response: Sequence[Support] = ()
    reference: Sequence[Support] = ()
    if Product.RESPONSE_CLAIMS_BY_REFERENCE in products:
        response = evidence.supports(Side.RESPONSE, BY_REFERENCE, Product.RESPONSE_CLAIMS_BY_REFERENCE)
        reference = evidence.supports(Side.REFERENCE, BY_RESPONSE, Product.REFERENCE_CLAIMS_BY_RESPONSE)
    similarity = evidence.answer_similarity() if Product.ANSWER_SIMILARITY in products else None
    return answer_correctness(response, reference, similarity, parameters["weights"], parameters["beta"])


def _check_weights(value: Any) -> str | None:
    wanted = "two numbers of at least 0, not both 0"
    if not isinstance(value, list | tuple) or len(value) != 2 or any(require_number_in(0)(weight) for weight in value):
        return wanted
    return None if 0 < sum(value) < math.inf else wanted


ANSWER_CORRECTNESS = Metric(
    name="answer_correctness",
    summary="Weighted mean of overlap in claims (F-beta) and similarity in meaning of response and reference.",
    question="Does the answer say what the reference says, and nothing that contradicts it?",
    source='Sarkar, "Evaluating LLM and RAG Systems: Metrics", Answer Correctness',
    family="answer_correctness",
    columns=constant(columns.RESPONSE, columns.REFERENCE),
    products=_products,
    compute=_compute,
    bounds=_bounds,
    undefined={reasons.ZERO_VECTOR: "the embedding of the response or the reference is a zero vector"},
    parameters={
        "weights": Parameter(summary="weights of claims and of meaning", default=(0.75, 0.25), check=_check_weights),
        "beta": Parameter(
            summary="weight of recall of claims relative to precision", default=1.0, check=require_number_in(0, 1000)
        ),
    },
)
