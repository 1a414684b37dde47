"""The plan of a run: made once, and changed as its configuration would be."""

import json
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import pytest

from flows.config.run_config import RunConfig
from flows.planning.metric_plan import plan_requests
from flows.planning.planner import compose_plan, draft_plan, plan_run, plan_source
from flows.planning.run_plan import RunPlan, locate
from metric_core.errors import ConfigError
from metric_core.metrics.registry import parse_request
from metric_core.question_kinds import KindGroup
from metric_core.stages import Stage

ROW = {"user_input": "Where?", "response": "In Rome.", "retrieved_contexts": ["It is in Rome."], "reference": "Rome."}
LAUNCH = {"python": "python", "model": "m"}


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW) + "\n", encoding="utf-8")
    return tmp_path / "rows.jsonl"


def config_of(source: Path, **options: Any) -> RunConfig:
    return RunConfig.model_validate({"source": str(source), "metrics": "faithfulness,answer_similarity", **options})


def plan_of(config: RunConfig, plan: RunPlan) -> RunPlan:
    """Return the plan of a configuration for the metrics of another plan."""
    return compose_plan(config, plan_source(config), plan.metrics)


def test_a_part_has_what_the_configuration_says(source: Path) -> None:
    plan = draft_plan(config_of(source, workers=3, shard_rows=7, tables="tables", refresh="verdicts", limit=5))
    assert (plan.storage.stages_at_once, plan.storage.rows_a_shard, plan.storage.tables_root) == (3, 7, "tables")
    assert plan.storage.refresh == (Stage.VERDICTS,)
    assert plan.source.options().limit == 5
    assert plan.reads[Stage.VERDICTS] == (Stage.SAMPLES, Stage.CLAIMS)
    assert [plan.stages[stage].model_dump()["refresh"] for stage in (Stage.CLAIMS, Stage.VERDICTS)] == [False, True]
    with pytest.raises(FrozenInstanceError):
        plan.folder = replace(plan.folder, out="elsewhere")  # type: ignore[misc]


def test_launched_judges_are_asked_where_they_run_by_all_stages(source: Path) -> None:
    config = config_of(source, judge={"launch": LAUNCH, "verdicts": {"launch": {**LAUNCH, "model": "v"}}})
    urls = {None: "http://a:1/v1", KindGroup.VERDICTS: "http://b:2/v1"}
    plan = draft_plan(config)
    assert plan.with_launched_judges(urls) == plan_of(config.with_launched_judges(urls), plan)
    assert plan.with_launched_judges({}) == plan


def test_other_metrics_have_the_settings_of_their_own_plan(source: Path) -> None:
    config = config_of(source, judge="http://localhost:1/v1", explain="all", refresh="claims")
    for metric in ("rubrics", "noise_sensitivity", "answer_relevancy(strictness=5)", "string_similarity"):
        metrics = plan_requests(config, [parse_request(metric)], ())
        changed = draft_plan(config).with_metrics(metrics, (Stage.VERDICTS,))
        assert changed.stages == metrics.stage_settings(config, (Stage.VERDICTS,))
        assert changed.storage.refresh == (Stage.VERDICTS,)


@pytest.mark.parametrize(
    "changes",
    [
        {"source": "fetched.jsonl", "retriever": None, "column_map": {}, "id_column": None, "limit": None},
        {"by": None, "slices": (), "baseline": None, "refresh": ()},
        {"out": None, "baseline": "runs/accepted", "name": "support"},
    ],
)
def test_changed_options_are_recorded_as_those_of_a_changed_configuration(
    source: Path, changes: dict[str, Any]
) -> None:
    options: dict[str, Any] = {"by": "user_input", "slices": "reference", "column_map": {"prompt": "user_input"}}
    config = config_of(source, limit=3, out="runs/other", **options)
    plan = compose_plan(config, plan_source(config), plan_requests(config, config.requests() or (), ()))
    changed, expected = plan.with_options(**changes), config.model_copy(update=changes)
    assert changed.record == plan_of(expected, plan).record
    assert changed.source == plan_source(expected)
    wanted = replace(plan_of(expected, plan), folder=replace(plan.folder, out=expected.out))  # named after its source
    assert (changed.outputs, changed.monitoring, changed.folder) == (wanted.outputs, wanted.monitoring, wanted.folder)


def test_a_source_on_this_machine_is_recorded_with_its_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = [locate(source) for source in ("a.jsonl", "hub:owner/name", "s3://bucket/a.jsonl", None)]
    assert found == [f"{tmp_path}/a.jsonl", "hub:owner/name", "s3://bucket/a.jsonl", None]


def test_a_plan_is_checked(source: Path) -> None:
    with pytest.raises(ConfigError, match="must be a folder of this machine, got s3://bucket/run"):
        plan_run(config_of(source, out="s3://bucket/run"))
    assert draft_plan(config_of(source, out="s3://bucket/run")).folder.out == "s3://bucket/run"
