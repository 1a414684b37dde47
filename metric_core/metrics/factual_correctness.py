"""Factual correctness: precision, recall or F-beta of the response's claims against those of the reference."""

from collections.abc import Sequence
from statistics import fmean

from metric_core import columns, reasons
from metric_core.declarations.metric import Metric, MetricRequest, Parameter, Parameters, constant
from metric_core.declarations.parameter_checks import require_number_in
from metric_core.evidence import BY_REFERENCE, BY_RESPONSE, Evidence
from metric_core.metrics._supports import all_known, count_supported, f_beta, mean_support
from metric_core.records import Score, Side, Support
from metric_core.stages import Product

F1, PRECISION, RECALL = "f1", "precision", "recall"
DOCUMENTED, REFERENCE = "documented", "reference"


def factual_correctness(
    response_by_reference: Sequence[Support],
    reference_by_response: Sequence[Support],
    mode: str = F1,
    beta: float = 1.0,
    recall_basis: str | None = None,
) -> Score:
    """Return precision, recall or F-beta of the claims of the response against those of the reference, not rounded.

    Precision is the share of response claims that the reference supports. Recall depends on its basis: "reference" is
    the share of reference claims that the response supports; "documented" is TP / (TP + FN) with TP counted over
    response claims and FN over reference claims, as Ragas does. F1 is the F-beta of TP, FP and FN ("documented"), or
    of precision and recall ("reference"). Probabilities give expected counts. A response without claims scores
    0; for a reference without claims, FN is 0.

    Source: Ragas, Factual Correctness.

    Args:
        response_by_reference: Support of each response claim by the reference, in [0, 1].
        reference_by_response: Support of each reference claim by the response, in [0, 1]; ignored for precision.
        mode: "f1", "precision" or "recall".
        beta: Weight of recall relative to precision in f1.
        recall_basis: "documented" or "reference"; None is "documented" for f1 and "reference" for recall. Recall on
            the basis "reference" ignores the response claims.

    Returns:
        A score in [0, 1]; undefined (no claims on the counted side or sides); failed (a verdict failed).

    Three of four response claims are right; two of three reference claims are covered:

    >>> factual_correctness([1, 1, 1, 0], [1, 1, 0]).value
    0.75
    >>> factual_correctness([1, 1, 1, 0], [1, 1, 0], mode="recall").value
    0.6666666666666666
    """
    if mode == PRECISION:
        return mean_support(response_by_reference, Score.undefined(reasons.NO_RESPONSE_CLAIMS))
    basis = _basis(mode, recall_basis)
    if mode == RECALL and basis == REFERENCE:
        return mean_support(reference_by_response, Score.undefined(reasons.NO_REFERENCE_CLAIMS))
    if not response_by_reference:
        return Score.scored(0.0) if reference_by_response else Score.undefined(reasons.NO_CLAIMS)
    response, reference = all_known(response_by_reference), all_known(reference_by_response)
    if response is None or reference is None:
        return Score.failed(reasons.NO_USABLE_VERDICT)
    if mode == F1 and basis == REFERENCE:
        recall = fmean(reference) if reference else 1.0
        return Score.scored(_f_of_shares(fmean(response), recall, beta))
    (right, wrong), (_, missed) = count_supported(response), count_supported(reference)
    return Score.scored(f_beta(right, wrong, missed, beta) if mode == F1 else _share(right, missed))


def _basis(mode: str, recall_basis: str | None) -> str:
    return recall_basis or (REFERENCE if mode == RECALL else DOCUMENTED)


def _share(part: float, rest: float) -> float:
    return part / (part + rest) if part else 0.0


def _f_of_shares(precision: float, recall: float, beta: float) -> float:
    both = precision * recall
    return (1 + beta**2) * both / (beta**2 * precision + recall) if both else 0.0


def _products(parameters: Parameters) -> tuple[Product, ...]:
    mode = parameters["mode"]
    if mode == PRECISION:
        return (Product.RESPONSE_CLAIMS_BY_REFERENCE,)
    if mode == RECALL and _basis(mode, parameters["recall_basis"]) == REFERENCE:
        return (Product.REFERENCE_CLAIMS_BY_RESPONSE,)
    return (Product.RESPONSE_CLAIMS_BY_REFERENCE, Product.REFERENCE_CLAIMS_BY_RESPONSE)


def _compute(request: MetricRequest, evidence: Evidence) -> Score:
    parameters, products = request.parameters, request.products
    response: Sequence[Support] = ()
    reference: Sequence[Support] = ()
    if Product.RESPONSE_CLAIMS_BY_REFERENCE in products:
        response = evidence.supports(Side.RESPONSE, BY_REFERENCE, Product.RESPONSE_CLAIMS_BY_REFERENCE)
    if Product.REFERENCE_CLAIMS_BY_RESPONSE in products:
        reference = evidence.supports(Side.REFERENCE, BY_RESPONSE, Product.REFERENCE_CLAIMS_BY_RESPONSE)
    return factual_correctness(response, reference, parameters["mode"], parameters["beta"], parameters["recall_basis"])


FACTUAL_CORRECTNESS = Metric(
    name="factual_correctness",
    summary="Precision, recall or F-beta of the claims of the response against those of the reference.",
    question="Does the answer say what the reference says, and nothing else?",
    source="Ragas, Factual Correctness",
    family="factual_correctness",
    columns=constant(columns.RESPONSE, columns.REFERENCE),
    products=_products,
    compute=_compute,
    undefined={
        reasons.NO_CLAIMS: "neither side makes any claims",
        reasons.NO_RESPONSE_CLAIMS: "the response makes no claims (mode = precision)",
        reasons.NO_REFERENCE_CLAIMS: "the reference makes no claims (mode = recall)",
    },
    parameters={
        "mode": Parameter(summary="quantity to measure", default=F1, choices=(F1, PRECISION, RECALL)),
        "beta": Parameter(
            summary="weight of recall relative to precision in f1", default=1.0, check=require_number_in(0, 1000)
        ),
        "recall_basis": Parameter(
            summary="claims that recall is a share of; unset: documented for f1, reference for recall",
            choices=(None, DOCUMENTED, REFERENCE),
        ),
    },
)
