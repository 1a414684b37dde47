"""Noise sensitivity: the share of claims of the response that are wrong and come from the retrieved contexts."""

from collections.abc import Sequence
from math import prod
from statistics import fmean

from metric_core import columns, reasons
from metric_core.declarations.metric import Metric, MetricRequest, Parameter, constant
from metric_core.evidence import BY_REFERENCE, Evidence
from metric_core.metrics._supports import all_known
from metric_core.records import Direction, Score, Side, Support
from metric_core.stages import Product

RELEVANT, IRRELEVANT = "relevant", "irrelevant"


def noise_sensitivity(
    response_by_reference: Sequence[Support],
    response_by_context: Sequence[Sequence[Support]],
    reference_by_context: Sequence[Sequence[Support]],
    mode: str = RELEVANT,
) -> Score:
    """Return the share of response claims that a retrieved context supports but the reference does not.

    Lower is better. A context is relevant if it supports a claim of the reference. `relevant` counts wrong claims that
    a relevant context supports; `irrelevant` counts wrong claims that only other contexts support. Probabilities are
    combined as if verdicts were independent.

    Failed verdicts count only if the score depends on them. It does not depend on context verdicts of claims that the
    reference supports, on reference claims by contexts that support no wrong claim, or on reference claims by contexts
    that support another reference claim with certainty.

    Source: Ragas, Noise Sensitivity.

    Args:
        response_by_reference: Support of each response claim by the reference, in [0, 1].
        response_by_context: Support of each response claim by each context, one list per context.
        reference_by_context: Support of each reference claim by each context, one list per context.
        mode: "relevant" or "irrelevant".

    Returns:
        A score in [0, 1]; undefined (no retrieved contexts, or no claims in the response or the reference); failed (a
        verdict that the score depends on failed).

    The second of three claims is wrong and supported by the first context, which also supports the reference:

    >>> noise_sensitivity([1, 0, 1], [[1, 1, 0], [0, 0, 1]], [[1], [0]]).value
    0.3333333333333333
    >>> noise_sensitivity([1, 0, 1], [[1, 1, 0], [0, 0, 1]], [[1], [0]], mode="irrelevant").value
    0.0
    """
    if not response_by_context:
        return Score.undefined(reasons.NO_CONTEXTS)
    if not response_by_reference:
        return Score.undefined(reasons.NO_RESPONSE_CLAIMS)
    if not reference_by_context[0]:
        return Score.undefined(reasons.NO_REFERENCE_CLAIMS)
    relevance = [_relevance(supports) for supports in reference_by_context]
    by_claim = zip(*response_by_context, strict=True)
    noise = all_known(
        _noise(by_reference, by_context, relevance, mode)
        for by_reference, by_context in zip(response_by_reference, by_claim, strict=True)
    )
    return Score.failed(reasons.NO_USABLE_VERDICT) if noise is None else Score.scored(fmean(noise))


def _relevance(supports: Sequence[Support]) -> Support:
    """Return the probability that a context supports any reference claim; None if a failed verdict leaves it open."""
    if any(support == 1 for support in supports):
        return 1.0
    known = all_known(supports)
    return None if known is None else 1 - prod(1 - support for support in known)


def _noise(by_reference: Support, by_context: Sequence[Support], relevance: Sequence[Support], mode: str) -> Support:
    """Return the probability that a response claim counts as noise; None if a failed verdict leaves it open."""
    if by_reference is None or by_reference == 1:
        return None if by_reference is None else 0.0
    supports = all_known(by_context)
    if supports is None:
        return None
    relevant = all_known(g for a, g in zip(supports, relevance, strict=True) if a > 0)
    if relevant is None:
        return None
    positive = [a for a in supports if a > 0]
    in_no_relevant = prod(1 - g * a for a, g in zip(positive, relevant, strict=True))
    if mode == RELEVANT:
        return (1 - by_reference) * (1 - in_no_relevant)
    return (1 - by_reference) * max(in_no_relevant - prod(1 - a for a in positive), 0.0)


def _compute(request: MetricRequest, evidence: Evidence) -> Score:
    return noise_sensitivity(
        evidence.supports(Side.RESPONSE, BY_REFERENCE, Product.RESPONSE_CLAIMS_BY_REFERENCE),
        evidence.context_supports(Side.RESPONSE, Product.CLAIMS_BY_EACH_CONTEXT),
        evidence.context_supports(Side.REFERENCE, Product.CLAIMS_BY_EACH_CONTEXT),
        request.parameters["mode"],
    )


NOISE_SENSITIVITY = Metric(
    name="noise_sensitivity",
    summary="Share of the claims of the response that are wrong and come from the retrieved contexts; lower is better.",
    question="Does the answer claim something wrong that it has from a passage?",
    source="Ragas, Noise Sensitivity",
    family="noise_sensitivity",
    columns=constant(columns.RESPONSE, columns.RETRIEVED_CONTEXTS, columns.REFERENCE),
    products=constant(Product.RESPONSE_CLAIMS_BY_REFERENCE, Product.CLAIMS_BY_EACH_CONTEXT),
    compute=_compute,
    direction=Direction.LOWER,
    undefined={
        reasons.NO_CONTEXTS: "nothing was retrieved",
        reasons.NO_RESPONSE_CLAIMS: "the response makes no claims",
        reasons.NO_REFERENCE_CLAIMS: "the reference makes no claims",
    },
    parameters={
        "mode": Parameter(
            summary="count wrong claims from relevant contexts, or only from irrelevant ones",
            default=RELEVANT,
            choices=(RELEVANT, IRRELEVANT),
        )
    },
)
