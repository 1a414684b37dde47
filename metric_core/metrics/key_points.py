"""Key points: how many of the facts that a good answer states are in the response, and how much else is."""

from collections.abc import Sequence
from functools import partial
from math import fsum

from metric_core import columns, reasons
from metric_core.declarations.metric import Metric, MetricRequest, Parameter, Parameters, constant
from metric_core.evidence import BY_RESPONSE, Evidence
from metric_core.metrics._supports import mean_support
from metric_core.records import Importance, Score, Side, Support, VerdictKind, VerdictRequest, mean_level
from metric_core.stages import Product

VITAL, ALL, WEIGHTED = "vital", "all", "weighted"
_WEIGHTS = {
    VITAL: {Importance.VITAL: 1.0, Importance.OKAY: 0.0},
    ALL: {Importance.VITAL: 1.0, Importance.OKAY: 1.0},
    WEIGHTED: {Importance.VITAL: 1.0, Importance.OKAY: 0.5},
}
_SOURCE = "TREC 2024 RAG Track, nugget evaluation (Pradeep et al. 2024)"


def key_point_recall(credit: Sequence[Support], importances: Sequence[Importance], counted: str = VITAL) -> Score:
    """Return the weighted share of key points that the response states.

    Source: Pradeep et al., "Initial Nugget Evaluation Results for the TREC 2024 RAG Track with the AutoNuggetizer
    Framework" (2024), scores V (vital), A (all) and W (weighted, in which an okay point counts one half).

    Args:
        credit: Credit for each point, in [0, 1]: 1 for support, one half for partial support (none in the strict
            scores), 0 for no support.
        importances: Importance of each point.
        counted: "vital", "all" or "weighted".

    Returns:
        A score in [0, 1]; undefined (no key points, no vital key points); failed (a verdict on a counted point failed).

    Two vital points are stated, one partly, one not; both okay points are stated:

    >>> importances = [Importance.VITAL] * 4 + [Importance.OKAY] * 2
    >>> strict, lenient = [1, 1, 0, 0, 1, 1], [1, 1, 0.5, 0, 1, 1]
    >>> [round(key_point_recall(strict, importances, counted).value, 9) for counted in ("vital", "all", "weighted")]
    [0.5, 0.666666667, 0.6]
    >>> [round(key_point_recall(lenient, importances, counted).value, 9) for counted in ("vital", "all", "weighted")]
    [0.625, 0.75, 0.7]
    >>> key_point_recall([1, 0], [Importance.OKAY] * 2).reason
    'no vital key points'
    """
    weights = [_WEIGHTS[counted][importance] for importance in importances]
    pairs = [(weight, earned) for weight, earned in zip(weights, credit, strict=True) if weight]
    if not pairs:
        return Score.undefined(reasons.NO_VITAL_KEY_POINTS if credit else reasons.NO_KEY_POINTS)
    known = [weight * earned for weight, earned in pairs if earned is not None]
    if len(known) < len(pairs):
        return Score.failed(reasons.NO_USABLE_VERDICT)
    return Score.scored(fsum(known) / fsum(weight for weight, _ in pairs))


def key_point_precision(supports: Sequence[Support]) -> Score:
    """Return the share of the claims of the response that the key points support.

    Args:
        supports: Support of each claim of the response by all key points together, in [0, 1].

    Returns:
        A score in [0, 1]; undefined (no claims in the response); failed (a verdict failed).

    >>> key_point_precision([1, 1, 0, 1]).value
    0.75
    """
    return mean_support(supports, Score.undefined(reasons.NO_RESPONSE_CLAIMS))


def _credit(evidence: Evidence, *, strict: bool) -> list[Support]:
    support, any_support = (
        evidence.supports(Side.KEY_POINT, BY_RESPONSE, Product.KEY_POINTS_BY_RESPONSE, kind)
        for kind in (VerdictKind.SUPPORT, VerdictKind.PARTIAL_SUPPORT)
    )
    if strict:
        return support
    both = zip(support, any_support, strict=True)
    return [mean_level(full, some) for full, some in both]


def _recall(request: MetricRequest, evidence: Evidence) -> Score:
    points = evidence.claim_ids(Side.KEY_POINT, Product.KEY_POINTS_BY_RESPONSE)
    importances = [evidence.importance(point) for point in points]
    credit = _credit(evidence, strict=request.parameters["strict"])
    return key_point_recall(credit, importances, request.parameters["importance"])


def _precision_requests(evidence: Evidence, _: Parameters) -> list[VerdictRequest]:
    points = evidence.claim_ids(Side.KEY_POINT, Product.KEY_POINTS)
    premise = "\n".join(evidence.claims[Side.KEY_POINT][point] for point in points)
    claims = evidence.claim_ids(Side.RESPONSE, Product.RESPONSE_CLAIMS) if points else ()
    return [VerdictRequest(claim=claim, premise_text=premise) for claim in claims]


def _precision(_: MetricRequest, evidence: Evidence) -> Score:
    if not evidence.claim_ids(Side.KEY_POINT, Product.KEY_POINTS):
        return Score.undefined(reasons.NO_KEY_POINTS)
    evidence.claim_ids(Side.RESPONSE, Product.RESPONSE_CLAIMS)
    return key_point_precision(evidence.requested_supports())


_WRITTEN_FROM = (
    *(columns.REFERENCE, columns.USER_INPUT, columns.REFERENCE_CONTEXTS),
    *(columns.RETRIEVED_CONTEXTS, columns.RETRIEVED_CONTEXT_IDS, columns.RELEVANCE_JUDGMENTS),
)
_NO_POINTS = "the row has no key points, its reference makes no claims, and the judge wrote none"
_ON_KEY_POINTS = partial(
    Metric,
    family="key_points",
    columns=constant(columns.RESPONSE, columns.KEY_POINTS),
    optional_columns=constant(*_WRITTEN_FROM),
    stand_ins={columns.KEY_POINTS: (columns.REFERENCE, columns.REFERENCE_CONTEXTS, columns.RETRIEVED_CONTEXTS)},
    in_default_suite=False,
)
"""Declaration of the metrics over key points."""

KEY_POINT_RECALL = _ON_KEY_POINTS(
    name="key_point_recall",
    summary="Share of the key points that the response states; an answer that leaves out half of them scores 0.5.",
    question="Does the answer state all key points?",
    source=_SOURCE,
    products=constant(Product.KEY_POINTS_BY_RESPONSE),
    compute=_recall,
    undefined={
        reasons.NO_KEY_POINTS: _NO_POINTS,
        reasons.NO_VITAL_KEY_POINTS: "all key points are okay, with importance=vital",
    },
    aliases=("nugget_recall",),
    parameters={
        "strict": Parameter(
            summary="count support alone; otherwise partial support counts one half",
            default=True,
            choices=(True, False),
        ),
        "importance": Parameter(
            summary="points that count: vital ones, all, or all with one half for okay ones",
            default=VITAL,
            choices=(VITAL, ALL, WEIGHTED),
        ),
    },
)
KEY_POINT_PRECISION = _ON_KEY_POINTS(
    name="key_point_precision",
    summary="Share of the claims of the response that the key points support.",
    question="Do the key points support all that the answer claims?",
    source="rag-assay",
    products=constant(Product.KEY_POINTS, Product.RESPONSE_CLAIMS, Product.REQUESTED_VERDICTS),
    verdicts=_precision_requests,
    compute=_precision,
    undefined={
        reasons.NO_KEY_POINTS: _NO_POINTS,
        reasons.NO_RESPONSE_CLAIMS: "the response makes no claims",
    },
)
