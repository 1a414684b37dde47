"""Rows that lack a value: only the metrics that need it are undefined there, in the run and in what reads the run."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from flows.config.gate_file import GateSettings
from flows.config.run_config import RunConfig
from flows.dry_run.dry_run import make_dry_run
from flows.evaluate import run_evaluation
from flows.execution.rerun_plan import parse_rerun_request
from flows.planning.planner import draft_plan
from flows.rerun import run_rerun
from flows.results.gated_comparison import CompareOptions, compare_runs
from metric_core.calibration.labels import LabelRules
from metric_core.errors import ConfigError
from metric_core.gates.rules import Outcome
from metric_core.metrics.registry import parse_request as parse_metric
from tasks.calibration.label_pairing import pair_labels, read_labelled
from tasks.runs.finished_run import FinishedRun
from tasks.runs.run_folder import RunFolder
from tasks.sources import SourceOptions
from tests.flows.test_evaluate import ANSWERS, scores
from tests.tasks.builders import script

pytestmark = [pytest.mark.prefect, pytest.mark.models]

LACKING: Mapping[str, Mapping[str, Any]] = {
    "whole": {},
    "no reference": {"reference": None},
    "blank reference": {"reference": " \n"},
    "no response": {"response": None},
    "empty response": {"response": ""},
    "no contexts": {"retrieved_contexts": None},
    "nothing found": {"retrieved_contexts": []},
    "no question": {"user_input": None},
}
ROWS: Sequence[dict[str, Any]] = [
    {
        "id": name,
        "user_input": f"Where are bikes repaired, {number}?",
        "response": f"Bikes are repaired in Dublin {number}.",
        "retrieved_contexts": [f"Repairs {number} happen in Dublin.", "The canteen serves soup."],
        "reference": f"In Dublin, at door {number}.",
        "faithful": number % 2,
        **change,
    }
    for number, (name, change) in enumerate(LACKING.items())
]
METRICS = ("faithfulness", "answer_relevancy", "context_precision", "context_recall", "nv_accuracy")
UNDEFINED = {
    "no reference": dict.fromkeys(METRICS[2:], "no reference"),
    "blank reference": dict.fromkeys(METRICS[2:], "no reference"),
    "no response": dict.fromkeys(("faithfulness", "answer_relevancy", "nv_accuracy"), "no response"),
    "empty response": dict.fromkeys(("faithfulness", "answer_relevancy", "nv_accuracy"), "no response"),
    "no contexts": dict.fromkeys(("faithfulness", "context_precision", "context_recall"), "no retrieved_contexts"),
    "nothing found": {"context_precision": "no retrieved contexts"},
    "no question": dict.fromkeys(("answer_relevancy", "context_precision", "nv_accuracy"), "no user_input"),
}
WARNINGS = [
    "2 of 8 rows have no value in response: faithfulness, answer_relevancy and nv_accuracy are undefined there",
    "1 of 8 rows have no value in retrieved_contexts: faithfulness, context_precision and context_recall are undefined there",  # noqa: E501
    "1 of 8 rows have no value in user_input: answer_relevancy, context_precision and nv_accuracy are undefined there",
    "2 of 8 rows have no value in reference: context_precision, context_recall and nv_accuracy are undefined there",
]


def config(folder: Path, rows: Sequence[Mapping[str, Any]] = ROWS, **options: Any) -> RunConfig:
    source = folder / "rows.jsonl"
    source.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    judge = script(folder, *ANSWERS).model_dump()
    values = {"source": str(source), "metrics": METRICS, "out": str(folder / "run"), "judge": judge}
    return RunConfig.model_validate(values | options)


def test_only_the_metrics_that_need_a_missing_value_are_undefined(prefect_stub: object, tmp_path: Path) -> None:  # noqa: ARG001
    planned = make_dry_run(draft_plan(config(tmp_path)))
    assert (planned.rows, planned.bad_rows) == (8, 0)
    assert set(WARNINGS) <= set(planned.problems)

    evaluation = run_evaluation(config(tmp_path))
    run = Path(evaluation.folder)
    cells = scores(run)
    found: dict[str, dict[str, str]] = {}
    for (row, metric), (_, status, reason) in cells.items():
        if status != "scored":
            assert status == "undefined", (row, metric, reason)
            found.setdefault(row, {})[metric] = reason
    assert found == UNDEFINED
    assert set(WARNINGS) <= set(evaluation.warnings)
    assert evaluation.bad_rows == 0

    summary = {entry["metric"]: entry for entry in RunFolder(run).read_json("summary.json")["metrics"]}
    for metric in METRICS:
        undefined = [reasons[metric] for reasons in UNDEFINED.values() if metric in reasons]
        assert (summary[metric]["scored"], summary[metric]["undefined"], summary[metric]["failed"]) == (
            *(8 - len(undefined), len(undefined)),
            0,
        )
    report = (run / "report.html").read_text(encoding="utf-8")
    assert "2 of 8 rows have no value in reference" in report

    with pytest.raises(ConfigError, match="nothing to do: no cell"):
        run_rerun(parse_rerun_request(run=str(run)))
    coverage = {"scored_at_least": 0.7, "metrics": ["faithfulness"]}
    gate = GateSettings.model_validate({"coverage": [coverage], "inconclusive": "passed"})
    result = compare_runs(run, run, CompareOptions(gate=gate)).gate
    assert result is not None
    assert result.outcome is Outcome.FAILED  # 5 of 8 rows are scored

    labelled = read_labelled(str(tmp_path / "rows.jsonl"), SourceOptions(), LabelRules("faithful"), None)
    counts = pair_labels(FinishedRun(run), parse_metric("faithfulness"), labelled, LabelRules("faithful")).counts
    assert (counts.rows, counts.undefined, counts.failed, counts.compared) == (8, 3, 0, 5)

    config(tmp_path, [row | {"reference": "In Dublin."} if row["reference"] is None else row for row in ROWS])
    changed = Path(run_rerun(parse_rerun_request(run=str(run), rows="changed", out=str(tmp_path / "changed"))).folder)
    again = scores(changed)
    assert {key[0] for key, cell in again.items() if cell != cells[key]} == {"no reference"}
    assert all(status == "scored" for (row, _), (_, status, _) in again.items() if row == "no reference")


def test_a_run_without_any_value_in_a_column_can_be_run_again(prefect_stub: object, tmp_path: Path) -> None:  # noqa: ARG001
    rows = [row | {"reference": None} for row in ROWS[:2]]
    run = run_evaluation(config(tmp_path, rows, metrics=("answer_similarity", "faithfulness"))).folder
    again = run_rerun(parse_rerun_request(run=run, rows="all", out=str(tmp_path / "again")))
    assert scores(Path(again.folder)) == scores(Path(run))
    assert set(again.warnings) >= {"none of the 2 rows has a value in reference: answer_similarity is undefined there"}
