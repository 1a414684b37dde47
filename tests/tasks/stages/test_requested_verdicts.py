"""The stage `verdicts`: the verdicts that metrics request, in two levels or in three, in one round or in several."""

from dataclasses import replace
from pathlib import Path

import pytest

from metric_core.declarations.metric import MetricRequest, Parameters, constant
from metric_core.errors import MetricError
from metric_core.evidence import Evidence
from metric_core.metrics.faithfulness import FAITHFULNESS
from metric_core.records import Sample, Side, VerdictRequest
from metric_core.stages import Product, Stage
from tasks.options.metric_settings import MetricSettings
from tasks.rows.sample_evidence import read_evidence
from tasks.stages.verdicts import VerdictsSettings, verdicts
from tests.tasks.builders import cells, run_stage, samples_table, says, script
from tests.tasks.stages.test_verdicts import NOISY, claims_table

REQUESTING = (Product.RESPONSE_CLAIMS, Product.REQUESTED_VERDICTS)


def requesting(*requests: VerdictRequest) -> MetricSettings:
    """Return a metric that requests these verdicts."""
    metric = replace(
        FAITHFULNESS,
        products=constant(*REQUESTING),
        verdicts=lambda _evidence, _parameters: requests,
    )

    class Given(MetricSettings):
        def request(self) -> MetricRequest:
            return metric.request()

    return Given(name="faithfulness", key="faithfulness")


def test_requested_verdicts_are_judged_once(tmp_path: Path) -> None:
    judge = script(
        tmp_path,
        says("verdict", "right", "truth", answer="yes"),
        says("verdict", "right", "second", answer="yes"),
        says("verdict", "A house is named.", "my answer", answer="no"),
        says("verdict", "right", "the law", answer="yes"),
    )
    wanted = requesting(
        VerdictRequest(claim="response:0", premise="reference"),
        VerdictRequest(claim="response:0", premise="context:1"),
        VerdictRequest(statement="A house is named.", premise="response"),
        VerdictRequest(claim="response:0", premise_text="the law"),
        VerdictRequest(claim="response:0", premise_text=" "),
    )
    tables = {
        Stage.SAMPLES: samples_table({**NOISY, "response": "my answer"}),
        Stage.CLAIMS: claims_table(response_0="right"),
    }
    settings = VerdictsSettings(
        products=(Product.RESPONSE_CLAIMS_BY_REFERENCE, Product.REQUESTED_VERDICTS),
        judge=judge,
        metrics=(wanted, wanted),
    )
    output = run_stage(verdicts, tables, settings)
    assert cells(output.table, "claim_id", "premise", "verdict", "statement", "premise_text") == [
        ("response:0", "reference", 1, None, None),
        ("response:0", "context:1", 1, None, None),
        (
            VerdictRequest(statement="A house is named.", premise="response").key[0],
            "response",
            0,
            "A house is named.",
            None,
        ),
        ("response:0", VerdictRequest(claim="", premise_text="the law").key[1], 1, None, "the law"),
        ("response:0", VerdictRequest(claim="", premise_text=" ").key[1], 0, None, " "),
    ]
    assert output.usage.questions == 4


def test_requested_levels_are_judged_beside_verdicts_in_two_levels(tmp_path: Path) -> None:
    judge = script(
        tmp_path,
        says("verdict", "right", "second", answer="no"),
        says("key_point", "right", "second", answer={"yes": 0.1, "partly": 0.7, "no": 0.2}),
    )
    alone = VerdictRequest(claim="response:0", premise="context:1")
    in_levels = replace(alone, has_levels=True)
    blank = VerdictRequest(claim="response:0", premise_text=" ", has_levels=True)
    sample = samples_table({**NOISY, "response": "my answer"})
    tables = {Stage.SAMPLES: sample, Stage.CLAIMS: claims_table(response_0="right")}
    metric = requesting(alone, in_levels, blank)
    levels = Product.REQUESTED_LEVELS
    request = replace(metric.request(), metric=replace(metric.request().metric, products=constant(levels, *REQUESTING)))

    class Given(MetricSettings):
        def request(self) -> MetricRequest:
            return request

    settings = VerdictsSettings(
        products=(Product.REQUESTED_VERDICTS, levels), judge=judge, metrics=(Given(name="faithfulness", key="f"),)
    )
    output = run_stage(verdicts, tables, settings)
    assert cells(output.table, "kind", "premise", "verdict", "probability") == [
        ("support", "context:1", 0, None),
        ("full_support", "context:1", 0, 0.1),
        ("partial_support", "context:1", 1, pytest.approx(0.8)),
        ("full_support", blank.key[1], 0, 0.0),
        ("partial_support", blank.key[1], 0, 0.0),
    ]
    (evidence,) = read_evidence([Sample("row-1")], {Stage.VERDICTS: output.table}, "binary")
    assert [each.support(evidence.verdicts) for each in (alone, in_levels, blank)] == [0.0, 0.5, 0.0]
    with pytest.raises(MetricError, match="REQUESTED_LEVELS"):
        run_stage(verdicts, tables, settings.model_copy(update={"metrics": (metric,)}))


def test_requests_that_depend_on_verdicts_are_judged_in_rounds(tmp_path: Path) -> None:
    alone = [VerdictRequest(claim="response:0", premise=f"context:{i}") for i in range(2)]
    together = VerdictRequest(claim="response:0", premise="contexts:0,1")

    def follow(evidence: Evidence, _: Parameters) -> list[VerdictRequest]:
        is_settled = any(r not in evidence.requested or evidence.decision(r) == 1 for r in alone)
        return alone if is_settled else [*alone, together]

    wanted = requesting()
    metric = replace(wanted.request().metric, verdicts=follow, follows_up=True)

    class Following(MetricSettings):
        def request(self) -> MetricRequest:
            return metric.request()

    judge = script(
        tmp_path, says("verdict", "right", "first\nsecond", answer="yes"), says("verdict", "right", answer="no")
    )
    sample = {**NOISY, "response": "right"}
    tables = {Stage.SAMPLES: samples_table(sample), Stage.CLAIMS: claims_table(response_0="right")}
    settings = VerdictsSettings(
        products=(Product.REQUESTED_VERDICTS,),
        judge=judge,
        metrics=(Following(name="faithfulness", key="faithfulness"),),
    )
    output = run_stage(verdicts, tables, settings)
    assert cells(output.table, "premise", "verdict") == [("context:0", 0), ("context:1", 0), ("contexts:0,1", 1)]


def test_only_rows_with_new_verdicts_are_looked_at_again(tmp_path: Path) -> None:
    looked_at: list[str] = []
    first = VerdictRequest(claim="response:0", premise="context:0")

    def follow(evidence: Evidence, _: Parameters) -> list[VerdictRequest]:
        looked_at.append(evidence.sample.row_id)
        return [first] if evidence.claims.get(Side.RESPONSE) else []

    wanted = requesting()
    metric = replace(wanted.request().metric, columns=constant(), verdicts=follow, follows_up=True)

    class Following(MetricSettings):
        def request(self) -> MetricRequest:
            return metric.request()

    settings = VerdictsSettings(
        products=(Product.REQUESTED_VERDICTS,),
        judge=script(tmp_path, says("verdict", answer="no")),
        metrics=(Following(name="faithfulness", key="faithfulness"),),
    )
    tables = {Stage.SAMPLES: samples_table(NOISY, NOISY), Stage.CLAIMS: claims_table(response_0="right")}
    output = run_stage(verdicts, tables, settings)
    assert output.table.num_rows == 1
    assert looked_at[:2] == ["row-1", "row-2"]
    assert set(looked_at[2:]) == {"row-1"}
