"""The plan of an anchor: that of the run, for other rows."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flows.calibrate import prepare_calibration
from flows.config.calibration_request import CalibrationRequest
from flows.config.run_config import RunConfig
from flows.findings.anchor.anchor_plan import plan_anchor
from flows.planning.metric_plan import plan_requests
from flows.planning.planner import compose_plan, draft_plan, plan_source
from metric_core.metrics.registry import parse_request
from tests.flows.test_calibrate import config_of

ROW = {"user_input": "Where?", "response": "In Rome.", "retrieved_contexts": ["It is in Rome."], "reference": "Rome."}


def test_the_anchor_is_planned_as_a_run_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "rows.jsonl"
    source.write_text(json.dumps(ROW) + "\n", encoding="utf-8")
    anchor = {"source": str(source.with_name("anchor.jsonl")), "column_map": {"prompt": "user_input"}}
    row = {"prompt": "Where?", "response": "In Rome.", "retrieved_contexts": ["It is in Rome."]}
    source.with_name("anchor.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    options: dict[str, Any] = {
        "limit": 1,
        "by": "user_input",
        "explain": "all",
        "refresh": "verdicts",
        "sinks": {"otlp": "http://o:1"},
        "metrics_file": "m.prom",
    }
    config = RunConfig.model_validate(
        {"source": str(source), "metrics": "faithfulness,answer_similarity", "anchor": anchor, **options}
    )
    plan = draft_plan(config)
    found = plan_anchor(plan)
    own = config.model_copy(
        update={
            **anchor,
            **dict.fromkeys(("anchor", "baseline", "by", "limit", "metrics_file")),
            "sinks": {},
            "explain": "none",
            "refresh": (),
            "slices": (),
        }
    )
    expected = compose_plan(own, plan_source(own), plan_requests(own, [parse_request("faithfulness")], ()))
    left_out = {"answer_similarity": ("reference",)}
    options_of_run = found.run.metrics.options
    expected = replace(expected, metrics=replace(expected.metrics, left_out=left_out, options=options_of_run))
    same = ("source", "metrics", "stages", "models", "storage", "outputs", "of_findings", "record")
    assert {name: getattr(found.run, name) for name in same} == {name: getattr(expected, name) for name in same}


def test_labelled_rows_are_evaluated_without_the_anchor_of_other_runs(tmp_path: Path) -> None:
    config = config_of(tmp_path, metrics=["faithfulness"], anchor={"source": str(tmp_path / "labels.jsonl")})

    assert prepare_calibration(CalibrationRequest(config=config, label="faithful")).config.anchor is None
