"""Citations: whether the passages that a response cites support its claims, and are needed for that."""

from collections.abc import Sequence
from functools import partial
from statistics import fmean

from metric_core import columns, reasons
from metric_core.claims.cited_claims import (
    CitedClaim,
    attribute,
    need_of,
    other_contexts,
    read_cited_claims,
    support_of,
)
from metric_core.declarations.metric import Metric, MetricRequest, Parameter, Parameters, constant
from metric_core.evidence import Evidence, joint_premise
from metric_core.metrics._supports import mean_support
from metric_core.records import Direction, Score, Side, Status, Support, VerdictRequest
from metric_core.stages import Product

CLAIM, SENTENCE = "claim", "sentence"
ANY, SUPPORTED, UNSUPPORTED = "any", "supported", "unsupported"
_SOURCE = "Gao et al. 2023, Enabling Large Language Models to Generate Text with Citations (ALCE)"
_NO_CLAIMS = Score.undefined(reasons.NO_RESPONSE_CLAIMS)
_UNITS = {
    CLAIM: (Side.RESPONSE, Product.RESPONSE_CLAIMS),
    SENTENCE: (Side.RESPONSE_SENTENCE, Product.RESPONSE_SENTENCES),
}
_UNIT = Parameter(
    summary="count the claims of the response, or its sentences as ALCE does", default=CLAIM, choices=(CLAIM, SENTENCE)
)
_NOTHING = {
    reasons.NO_RESPONSE_CLAIMS: "the response makes no claims",
    reasons.NO_RESPONSE_SENTENCES: "the response has no sentences, with unit=sentence",
}


def citation_recall(supports: Sequence[Support], nothing: Score = _NO_CLAIMS) -> Score:
    """Return the share of claims that the passages they cite support together.

    Source: Gao et al. 2023 (ALCE), Section 3.3, with claims in place of sentences.

    Args:
        supports: Support of each claim by the passages that it cites, in [0, 1]; 0 for a claim that cites none.
        nothing: Score of a response without claims.

    Returns:
        A score in [0, 1]; `nothing` without claims; failed (a verdict failed).

    Of three claims, the first two cite passages; the passages of the second do not support it:

    >>> citation_recall([1, 0, 0]).value
    0.3333333333333333
    """
    return mean_support(supports, nothing)


def citation_precision(needs: Sequence[Support]) -> Score:
    """Return the share of citations that are needed.

    A citation is needed if its passage supports a claim that it follows, alone, or together with the other cited
    passages, which do not support the claim without it. A citation that names no passage is not needed.

    Source: Gao et al. 2023 (ALCE), Section 3.3.

    Args:
        needs: For each citation, whether it is needed, in [0, 1].

    Returns:
        A score in [0, 1]; undefined (no citations in the response); failed (a verdict failed).

    >>> citation_precision([1, 0]).value, citation_precision([]).reason
    (0.5, 'no citations in the response')
    """
    return mean_support(needs, Score.undefined(reasons.NO_CITATIONS))


def citation_f1(precision: Score, recall: Score) -> Score:
    """Return the harmonic mean of citation precision and recall.

    Returns:
        A score in [0, 1]; 0 without citations, because then the recall is 0 whatever the precision; the recall's
        reason if that is undefined; failed (a verdict failed).

    >>> citation_f1(Score.scored(0.5), Score.scored(1)).value
    0.6666666666666666
    >>> citation_f1(Score.undefined("no citations in the response"), Score.scored(0)).value
    0.0
    """
    if recall.status is not Status.SCORED or precision.status is Status.FAILED:
        return recall if recall.status is not Status.SCORED else precision
    p, r = precision.value or 0.0, recall.value or 0.0
    return Score.scored(2 * p * r / (p + r) if p + r else 0.0)


def any_need(needs: Sequence[Support]) -> Support:
    """Return whether any claim needs a citation; None if a failed verdict leaves it open.

    >>> any_need([0, 1, None]), any_need([0, None]), any_need([0, 0.5])
    (1, None, 0.5)
    """
    known = [need for need in needs if need is not None]
    if 1 in known:
        return 1
    return max(known, default=0.0) if len(known) == len(needs) else None


def _has_levels(parameters: Parameters) -> bool:
    return "partial" in parameters and bool(parameters["partial"])


def _claims(evidence: Evidence, parameters: Parameters) -> list[CitedClaim]:
    return read_cited_claims(evidence, *_UNITS[parameters["unit"]], has_levels=_has_levels(parameters))


def _nothing(parameters: Parameters) -> Score:
    return _NO_CLAIMS if parameters["unit"] == CLAIM else Score.undefined(reasons.NO_RESPONSE_SENTENCES)


def _supports(evidence: Evidence, parameters: Parameters) -> dict[VerdictRequest, Support]:
    supports = evidence.requested_supports(in_levels=_has_levels(parameters))
    return dict(zip(evidence.requested, supports, strict=True))


def _recall_requests(evidence: Evidence, parameters: Parameters) -> list[VerdictRequest]:
    return [r for claim in _claims(evidence, parameters) for r in attribute(claim, evidence).requests]


def _precision_requests(evidence: Evidence, parameters: Parameters) -> list[VerdictRequest]:
    return [r for claim in _claims(evidence, parameters) for r in attribute(claim, evidence, precisely=True).requests]


def _misattribution_requests(evidence: Evidence, parameters: Parameters) -> list[VerdictRequest]:
    requests: list[VerdictRequest] = []
    for claim in _claims(evidence, parameters):
        found = attribute(claim, evidence)
        requests += found.requests
        if claim.citations and found.supported is False:
            requests += other_contexts(claim, evidence.sample)
    return requests


def _uncited_requests(evidence: Evidence, parameters: Parameters) -> list[VerdictRequest]:
    if parameters["count"] == ANY:
        return []
    return [_by_everything(claim, evidence) for claim in _claims(evidence, parameters) if not claim.citations]


def _by_everything(claim: CitedClaim, evidence: Evidence) -> VerdictRequest:
    """Return the verdict on a claim that faithfulness reads, too."""
    return VerdictRequest(
        claim=claim.claim, premise=joint_premise(evidence.sample, Product.RESPONSE_CLAIMS_BY_CONTEXTS)
    )


def _recall(request: MetricRequest, evidence: Evidence) -> Score:
    claims, supports = _claims(evidence, request.parameters), _supports(evidence, request.parameters)
    return citation_recall(
        [support_of(attribute(claim, evidence), supports) for claim in claims], _nothing(request.parameters)
    )


def _precision(request: MetricRequest, evidence: Evidence) -> Score:
    claims, supports = _claims(evidence, request.parameters), _supports(evidence, request.parameters)
    if not claims:
        return _nothing(request.parameters)
    needs: dict[tuple[int | None, str | tuple[int, ...]], list[Support]] = {}
    for claim in claims:
        found = attribute(claim, evidence, precisely=True)
        for label, contexts in claim.citations.items():
            of_citation = needs.setdefault((claim.sentence, contexts or label), [])
            of_citation += [need_of(index, found, supports) for index in contexts]
    return citation_precision([any_need(of_citation) for of_citation in needs.values()])


def _f1(request: MetricRequest, evidence: Evidence) -> Score:
    return citation_f1(_precision(request, evidence), _recall(request, evidence))


def _misattributed(request: MetricRequest, evidence: Evidence) -> Score:
    claims, supports = _claims(evidence, request.parameters), _supports(evidence, request.parameters)
    shares: list[Support] = []
    for claim in claims:
        found = attribute(claim, evidence)
        if not claim.citations or found.supported:
            shares.append(0.0)
            continue
        whole = support_of(found, supports)
        elsewhere = any_need([supports.get(other) for other in other_contexts(claim, evidence.sample)])
        shares.append(None if whole is None or elsewhere is None else (1 - whole) * elsewhere)
    return mean_support(shares, _nothing(request.parameters))


def _uncited(request: MetricRequest, evidence: Evidence) -> Score:
    claims, count = _claims(evidence, request.parameters), request.parameters["count"]
    supports = _supports(evidence, request.parameters) if count != ANY else {}
    shares: list[Support] = []
    for claim in claims:
        if claim.citations or count == ANY:
            shares.append(float(not claim.citations))
            continue
        support = supports[_by_everything(claim, evidence)]
        shares.append(support if support is None or count == SUPPORTED else 1 - support)
    return mean_support(shares, _nothing(request.parameters))


def _dangling(_: MetricRequest, evidence: Evidence) -> Score:
    sentences = read_cited_claims(evidence, *_UNITS[SENTENCE])
    if not sentences:
        return Score.undefined(reasons.NO_RESPONSE_SENTENCES)
    named = [bool(contexts) for sentence in sentences for contexts in sentence.citations.values()]
    return Score.scored(fmean(not name for name in named)) if named else Score.undefined(reasons.NO_CITATIONS)


def _products(parameters: Parameters) -> tuple[Product, ...]:
    held = (Product.RESPONSE_CLAIMS,) if parameters["unit"] == CLAIM else ()
    levels = (Product.REQUESTED_LEVELS,) if _has_levels(parameters) else ()
    return (*held, Product.RESPONSE_SENTENCES, *levels, Product.REQUESTED_VERDICTS)


def _products_of_uncited(parameters: Parameters) -> tuple[Product, ...]:
    products = _products(parameters)
    return products[:-1] if parameters["count"] == ANY else products


def _columns_of_uncited(parameters: Parameters) -> tuple[str, ...]:
    return (columns.RESPONSE,) if parameters["count"] == ANY else (columns.RESPONSE, columns.RETRIEVED_CONTEXTS)


def _optional_of_uncited(parameters: Parameters) -> tuple[str, ...]:
    if parameters["count"] == ANY:
        return (columns.RETRIEVED_CONTEXTS, columns.RETRIEVED_CONTEXT_IDS)
    return (columns.RETRIEVED_CONTEXT_IDS, columns.EARLIER_CONTEXTS, columns.TOOL_RESULTS)


_ATTRIBUTED = partial(
    Metric,
    source=_SOURCE,
    family="citations",
    columns=constant(columns.RESPONSE, columns.RETRIEVED_CONTEXTS),
    optional_columns=constant(columns.RETRIEVED_CONTEXT_IDS),
    products=_products,
    follows_up=True,
    undefined=_NOTHING,
    parameters={
        "unit": _UNIT,
        "partial": Parameter(
            summary="judge support in three levels; partial support counts one half",
            default=False,
            choices=(True, False),
        ),
    },
    in_default_suite=False,
)
"""Declaration of the metrics that read the verdicts by cited passages."""

CITATION_PRECISION = _ATTRIBUTED(
    name="citation_precision",
    summary="Share of the citations of the response that its claims need.",
    question="Is every citation of the answer needed?",
    verdicts=_precision_requests,
    compute=_precision,
    undefined={**_NOTHING, reasons.NO_CITATIONS: "no claim of the response has a citation marker"},
)
CITATION_RECALL = _ATTRIBUTED(
    name="citation_recall",
    summary="Share of the claims of the response that the passages they cite support.",
    question="Do the passages that the answer cites support all that it claims?",
    verdicts=_recall_requests,
    compute=_recall,
)
CITATION_F1 = _ATTRIBUTED(
    name="citation_f1",
    summary="Harmonic mean of citation precision and citation recall.",
    question="Do the citations of the answer support all that it claims, without any that is not needed?",
    verdicts=_precision_requests,
    compute=_f1,
)
MISATTRIBUTED_CLAIMS = _ATTRIBUTED(
    name="misattributed_claims",
    summary="Share of the claims that a retrieved passage supports, but not the cited ones; lower is better.",
    question="Does the answer cite the wrong passage for a claim that another passage supports?",
    source="rag-assay",
    verdicts=_misattribution_requests,
    compute=_misattributed,
    direction=Direction.LOWER,
)
UNCITED_CLAIMS = Metric(
    name="uncited_claims",
    summary="Share of the claims of the response without a citation marker; lower is better.",
    question="Does the answer claim something without a citation?",
    source="rag-assay",
    family="citations",
    columns=_columns_of_uncited,
    optional_columns=_optional_of_uncited,
    products=_products_of_uncited,
    verdicts=_uncited_requests,
    compute=_uncited,
    direction=Direction.LOWER,
    undefined=_NOTHING,
    parameters={
        "unit": _UNIT,
        "count": Parameter(
            summary="count all claims without a marker, or those that the contexts support, or do not",
            default=ANY,
            choices=(ANY, SUPPORTED, UNSUPPORTED),
        ),
    },
    in_default_suite=False,
)
DANGLING_CITATIONS = Metric(
    name="dangling_citations",
    summary="Share of the citations of the response that name no retrieved passage; lower is better.",
    source="rag-assay",
    family="citations",
    columns=constant(columns.RESPONSE, columns.RETRIEVED_CONTEXTS),
    optional_columns=constant(columns.RETRIEVED_CONTEXT_IDS),
    products=constant(Product.RESPONSE_SENTENCES),
    compute=_dangling,
    direction=Direction.LOWER,
    undefined={
        reasons.NO_RESPONSE_SENTENCES: "the response is empty",
        reasons.NO_CITATIONS: "the response has no citation marker",
    },
    in_default_suite=False,
)
