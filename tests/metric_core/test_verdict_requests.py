"""Metrics request verdicts on claims and statements of their own, and read exactly these."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from metric_core import reasons
from metric_core.declarations.metric import Metric, MetricRequest, constant
from metric_core.errors import MetricError
from metric_core.evidence import BY_RESPONSE, Evidence
from metric_core.records import Sample, Score, Side, VerdictKind, VerdictRequest
from metric_core.stages import Product

STATEMENT = VerdictRequest(statement="It names a source.", premise=BY_RESPONSE)
CLAIM = VerdictRequest(claim="response:0", premise="context:0")
ROW = Evidence(
    Sample(row_id="r1", response="As the law says, it rains.", retrieved_contexts=("Rain.",)),
    claims={Side.RESPONSE: {"response:0": "It rains."}},
    verdicts={(VerdictKind.SUPPORT, *STATEMENT.key): 1.0, (VerdictKind.SUPPORT, *CLAIM.key): 0.0},
)


def _compute(_request: MetricRequest, evidence: Evidence) -> Score:
    supports = evidence.requested_supports()
    return Score.scored(sum(support or 0.0 for support in supports) / len(supports))


SOURCES = Metric(
    name="sources",
    summary="Names sources.",
    source="tests",
    family="tests",
    columns=constant("response"),
    products=constant(Product.RESPONSE_CLAIMS, Product.REQUESTED_VERDICTS),
    verdicts=lambda _evidence, _parameters: [STATEMENT, CLAIM, STATEMENT],
    compute=_compute,
    undefined={},
)


def requests(ask: Callable[[Evidence, Any], Any]) -> Any:
    return replace(SOURCES, verdicts=ask).request().verdict_requests(ROW)


def test_a_metric_reads_the_verdicts_that_it_requests() -> None:
    assert SOURCES.request().verdict_requests(ROW) == (STATEMENT, CLAIM)
    assert SOURCES.request().score(ROW) == Score.scored(0.5)


def test_a_row_without_the_column_or_the_claims_requests_nothing() -> None:
    assert SOURCES.request().verdict_requests(Evidence(Sample())) == ()
    gap = Score.failed(reasons.NO_USABLE_REPLY)
    read = replace(SOURCES, verdicts=lambda evidence, _: evidence.claim_ids(Side.RESPONSE, Product.RESPONSE_CLAIMS))  # type: ignore[arg-type,return-value]
    assert read.request().verdict_requests(replace(ROW, gaps={Product.RESPONSE_CLAIMS: gap})) == ()


def test_a_judge_that_cannot_judge_leaves_a_gap() -> None:
    gap = Score.undefined(reasons.NEEDS_LANGUAGE_MODEL)
    assert SOURCES.request().score(replace(ROW, gaps={Product.REQUESTED_VERDICTS: gap})) == gap


def test_requests_must_name_claims_and_premises_of_the_row() -> None:
    with pytest.raises(MetricError, match="requests a verdict on 'response:9', which is not a claim of the row"):
        requests(lambda _evidence, _: [VerdictRequest(claim="response:9", premise="context:0")])
    with pytest.raises(MetricError, match="by 'context:3'; premises of the row are: contexts, response, context:0"):
        requests(lambda _evidence, _: [VerdictRequest(claim="response:0", premise="context:3")])
    with pytest.raises(MetricError, match="requests 'it rains', wanted a VerdictRequest"):
        requests(lambda _evidence, _: ["it rains"])
    with pytest.raises(MetricError, match="requests None, wanted a list of VerdictRequest"):
        requests(lambda _evidence, _: None)
    with pytest.raises(ValueError, match="either claim or statement"):
        VerdictRequest(premise="contexts")


TOGETHER = VerdictRequest(claim="response:0", premise="contexts:0,1")
TWO = replace(ROW, sample=Sample(row_id="r1", response="It rains.", retrieved_contexts=("Rain.", "Wet.")))


def _more(evidence: Evidence, _: Any) -> list[VerdictRequest]:
    """Ask for both contexts together where the first alone does not support the claim."""
    is_settled = CLAIM not in evidence.requested or evidence.decision(CLAIM) == 1
    return [CLAIM] if is_settled else [CLAIM, TOGETHER]


FOLLOWING = replace(SOURCES, verdicts=_more, follows_up=True)


def test_a_metric_decides_by_the_verdicts_that_it_requested_what_else_it_requests() -> None:
    request = FOLLOWING.request()
    assert request.verdict_requests(replace(TWO, verdicts={})) == (CLAIM,)
    assert request.verdict_requests(TWO) == (CLAIM, TOGETHER)
    known = {**TWO.verdicts, (VerdictKind.SUPPORT, *TOGETHER.key): 1.0}
    assert request.score(replace(TWO, verdicts=known)) == Score.scored(0.5)
    assert request.verdict_requests(replace(TWO, verdicts={(VerdictKind.SUPPORT, *CLAIM.key): 1.0})) == (CLAIM,)


def test_decisions_are_those_of_the_judge_whatever_verdicts_count() -> None:
    key = (VerdictKind.SUPPORT, *CLAIM.key)
    unsure = replace(TWO, verdicts={key: 0.4}, decisions={key: 1.0})
    assert FOLLOWING.request().verdict_requests(unsure) == (CLAIM,)


def test_what_was_not_requested_cannot_be_read() -> None:
    peeking = replace(FOLLOWING, verdicts=lambda evidence, _: [CLAIM] if evidence.decision(TOGETHER) else [])
    with pytest.raises(MetricError, match="has not been requested"):
        peeking.request().verdict_requests(TWO)
    with pytest.raises(MetricError, match="set follows_up=True"):
        requests(lambda evidence, _: [CLAIM] if evidence.decision(CLAIM) else [])


def test_a_metric_that_never_stops_asking_is_stopped() -> None:
    def another(evidence: Evidence, _: Any) -> list[VerdictRequest]:
        return [VerdictRequest(statement=f"It is {len(evidence.requested)}.", premise=BY_RESPONSE)]

    asked = [VerdictRequest(statement=f"It is {number}.", premise=BY_RESPONSE) for number in range(50)]
    known = {(VerdictKind.SUPPORT, *request.key): 1.0 for request in asked}
    with pytest.raises(MetricError, match="requests further verdicts after 20 rounds"):
        replace(FOLLOWING, verdicts=another).request().verdict_requests(replace(TWO, verdicts=known))


@pytest.mark.parametrize("premise", ["contexts:1,0", "contexts:0,0", "contexts:0,2", "contexts:0", "contexts:"])
def test_contexts_together_are_named_in_one_way(premise: str) -> None:
    with pytest.raises(MetricError, match=f"by '{premise}'; premises of the row are"):
        replace(
            SOURCES, verdicts=lambda _evidence, _: [VerdictRequest(claim="response:0", premise=premise)]
        ).request().verdict_requests(TWO)


def test_requests_cannot_depend_on_verdicts() -> None:
    with pytest.raises(
        MetricError, match="in its function verdicts, which can read declared claims and sentences only"
    ):
        requests(lambda evidence, _: evidence.requested_supports())


def test_verdicts_of_other_metrics_cannot_be_read() -> None:
    def peek(_request: MetricRequest, evidence: Evidence) -> Score:
        return Score.scored(evidence.verdicts[VerdictKind.SUPPORT, *CLAIM.key] or 0.0)

    with pytest.raises(MetricError, match="claims by each context"):
        replace(SOURCES, compute=peek).request().score(ROW)
