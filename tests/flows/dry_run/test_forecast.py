"""Tests of the predicted time and money of a run: from given rates, and from those that an earlier run measured."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from flows.config.run_config import RunConfig
from flows.dry_run.dry_run_result import DryRun, StageDryRun
from flows.dry_run.forecast import Rates, make_forecast
from flows.planning.metric_plan import MetricPlan
from flows.planning.planner import compose_plan, plan_source
from flows.planning.run_plan import RunPlan
from metric_core.stages import Stage
from tasks.history.catalogue import Catalogue
from tasks.history.recorded_run import RecordedRun, RunDetails
from tasks.metering.throughput import ServerThroughput, ThroughputRecord
from tasks.models.judges.protocol import JudgeIdentity
from tasks.opening.counting_judge import Tally

JUDGE = JudgeIdentity("server", "qwen", "r1", "", language_model=True, served="0123456789abcdef")
TALLY = Tally(
    questions=100, asked=100, requests=100, prompt_tokens=1_000_000, output_tokens=10_000, cached_tokens=800_000
)
DRY_RUN = DryRun(10, 0, (StageDryRun(Stage.VERDICTS, judged=True, tally=TALLY),), (), judge=JUDGE)
SERVER = {"prompt_tokens_per_second": 900.0, "output_tokens_per_second": 100.0}
COUNTS = {
    **dict.fromkeys(("seconds", "rows_per_second", "in_flight"), 1.0),
    **dict.fromkeys(("requests", "prompt_tokens", "cached_tokens", "estimated_cached_tokens", "output_tokens"), 9),
    "server": "http://gpu/v1",
    "slots": 128,
    "cached_tokens_from": "replies",
}


def plan(folder: Path, **options: Any) -> RunPlan:
    config = RunConfig.model_validate({"history": str(folder / "history.db"), **options})
    return compose_plan(config, plan_source(config), MetricPlan((), frozenset(), {}))


def record(folder: Path, day: int, server: dict[str, Any], **versions: str) -> None:
    run = RecordedRun(
        f"run-{day}",
        "nightly",
        datetime(2026, 3, day, tzinfo=UTC),
        "",
        "completed",
        versions={"judge": "qwen r1", "judge_server": "0123456789ab", **versions},
        details=RunDetails(
            throughput=ThroughputRecord(rows=10, servers=(ServerThroughput.model_validate(COUNTS | server),))
        ),
    )
    Catalogue(str(folder / "history.db")).add(run)


def test_given_rates_give_time_and_money(tmp_path: Path) -> None:
    prices = {"prompt": 1.0, "cached_prompt": 0.5, "output": 10.0, "gpu_hour": 3.6}
    forecast = make_forecast(plan(tmp_path, prices=prices), DRY_RUN, Rates.from_speeds(10_000, 500))
    assert forecast.seconds == pytest.approx(200_000 / 10_000 + 10_000 / 500)
    assert forecast.money is not None
    assert forecast.money.total == pytest.approx(0.2 + 0.4 + 0.1 + 0.04)


def test_the_last_run_with_the_same_judge_gives_the_rates(tmp_path: Path) -> None:
    record(tmp_path, 1, SERVER | {"prompt_tokens_per_second": 10.0})
    record(tmp_path, 2, SERVER)
    record(tmp_path, 3, SERVER | {"prompt_tokens_per_second": 1.0}, judge_server="another model")
    record(tmp_path, 4, dict.fromkeys(SERVER))
    forecast = make_forecast(plan(tmp_path), DRY_RUN)
    assert forecast.rates is not None
    assert forecast.rates.measured == datetime(2026, 3, 2, tzinfo=UTC)
    assert forecast.seconds == pytest.approx((200_000 + 10_000) / 1000)


def test_missed_runs_do_not_crowd_out_the_rates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.dry_run.forecast._LAST_RUNS", 2)
    record(tmp_path, 1, SERVER)
    for day in (2, 3, 4):
        due = datetime(2026, 3, day, tzinfo=UTC)
        missed = RecordedRun.without_results(f"missed-{day}", "nightly", due, "missed", "no worker", "schedule")
        Catalogue(str(tmp_path / "history.db")).add(missed)
    assert make_forecast(plan(tmp_path), DRY_RUN).rates is not None


def test_unknown_rates_leave_the_time_and_the_cost_of_gpus_unknown(tmp_path: Path) -> None:
    forecast = make_forecast(plan(tmp_path, prices={"gpu_hour": 3.5}, budget=1), DRY_RUN)
    assert (forecast.seconds, forecast.money, forecast.covered) == (None, None, None)
    forecast = make_forecast(plan(tmp_path, prices={"output": 100.0}), DRY_RUN)
    assert forecast.money is not None
    assert forecast.money.total == pytest.approx(1.0)
    unknown = make_forecast(plan(tmp_path), replace(DRY_RUN, judge=None))
    assert unknown.rates is None


def test_a_history_that_cannot_be_read_is_not_taken_for_one_without_such_a_run(tmp_path: Path) -> None:
    assert make_forecast(plan(tmp_path), DRY_RUN).unknown_runs == ""
    (tmp_path / "history.db").write_bytes(b"this is no database " * 400)
    forecast = make_forecast(plan(tmp_path), DRY_RUN)
    assert "history.db cannot be read: " in forecast.unknown_runs


@pytest.mark.parametrize(
    ("budget", "covered"), [("1M tokens", False), ("1.1M tokens", True), (0.9, False), (1.1, True), (None, None)]
)
def test_a_budget_is_compared_with_the_prediction(tmp_path: Path, budget: Any, covered: bool | None) -> None:
    found = make_forecast(plan(tmp_path, prices={"output": 100.0}, budget=budget), DRY_RUN)
    assert found.covered is covered


def test_a_run_that_asks_nothing_takes_no_time_and_costs_nothing(tmp_path: Path) -> None:
    idle = DryRun(10, 0, (StageDryRun(Stage.VERDICTS, judged=True),), ())
    forecast = make_forecast(plan(tmp_path, prices={"gpu_hour": 3.5}, budget="1 tokens"), idle)
    assert forecast.money is not None
    assert (forecast.seconds, forecast.money.total, forecast.covered) == (0.0, 0.0, True)


def test_a_judge_that_was_measured_when_it_was_launched_here_gives_the_rates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def find_speed(_home: Path, urls: Any) -> tuple[float, float]:
        asked.append(urls)
        return 50.0, 10.0

    monkeypatch.setattr("flows.dry_run.forecast.find_speed", find_speed)
    record(tmp_path, 1, SERVER)
    judge = {"backend": "server", "server": {"urls": ["http://127.0.0.1:8000/v1"]}}
    forecast = make_forecast(plan(tmp_path, judge=judge), DRY_RUN)
    assert asked == [("http://127.0.0.1:8000/v1",)]
    assert forecast.seconds == pytest.approx(200_000 / 50 + 10_000 / 10)
    assert forecast.rates is not None
    assert forecast.rates.words.endswith("when the judge was started (reads 50 and writes 10 tokens per second)")
