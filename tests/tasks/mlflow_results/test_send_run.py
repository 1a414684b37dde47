"""Runs on an MLflow server: what it gets, and that it gets nothing twice."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from metric_core.errors import ConfigError, MissingDependencyError
from tasks.mlflow_results import mlflow_sink
from tasks.mlflow_results.mlflow_sink import MLFLOW, split_experiment
from tasks.record.outcome import RunOutcome
from tasks.reports.exports.sink import SinkError
from tasks.reports.exports.sinks import find_sink
from tasks.runs.outcome_file import write_outcome
from tests.tasks.compared import write_run
from tests.tasks.mlflow_results.fake_mlflow import FakeMlflow

pytest.importorskip("mlflow", reason="mlflow-skinny is not installed")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

TRACES = tuple(f"{number:032x}" for number in range(4))
THERE = tuple(f"tr-{trace}" for trace in TRACES[:3])
MEAN = 0.55


@pytest.fixture
def run(tmp_path: Path) -> Path:
    extras = [*({"trace_id": trace} for trace in TRACES), *({} for _ in range(36))]
    folder = write_run(tmp_path / "nightly", 0.5, rows=40, extras=extras, run_id="r1", name="handbook")
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    (faithfulness,) = [each for each in summary["metrics"] if each["metric"] == "faithfulness"]
    faithfulness["distribution"] |= {"mean": MEAN, "interval": {"low": 0.5, "high": 0.6}}
    (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    (folder / "report.html").write_text("<p>report</p>", encoding="utf-8")
    return folder


def counts(server: FakeMlflow) -> dict[str, Any]:
    """Return how much a server has."""
    return {
        "runs": len(server.runs),
        "metrics": len(server.runs[0]["data"]["metrics"]),
        "params": len(server.runs[0]["data"]["params"]),
        "files": sorted(server.files),
        "assessments": {trace: len(found) for trace, found in server.assessments.items()},
    }


def test_a_run_has_parameters_metrics_with_intervals_costs_files_and_the_outcome(run: Path) -> None:
    write_outcome(run, RunOutcome(name="handbook", trigger="manual", gate="failed", message="faithfulness is 0.54"))
    with FakeMlflow(*THERE) as server:
        sent = MLFLOW.send(server.origin, run)
    assert (
        sent == f"run {server.run_id} of the experiment handbook, with 6 assessments on 3 traces; 1 trace is not there"
    )
    assert server.experiments == ["handbook"]
    metrics, tags = server.values("metrics"), server.values("tags")
    assert [metrics[f"faithfulness{end}"] for end in ("", ".low", ".high")] == [MEAN, 0.5, 0.6]
    assert (metrics["faithfulness.scored"], metrics["nv_accuracy.undefined"], metrics["rows"]) == (40, 40, 40)
    assert (metrics["questions"], metrics["tokens.prompt"], metrics["tokens.output"]) == (12, 3456, 78)
    assert "nv_accuracy" not in metrics  # has no value
    assert server.values("params")["metrics"] == "faithfulness, noise_sensitivity, nv_accuracy"
    assert server.values("params")["data"]
    assert tags["rag_assay.outcome"] == "gate failed"
    assert tags["mlflow.note.content"] == "faithfulness is 0.54"
    assert {"report.html", "outcome.json", "run.json", "summary.json"} <= server.files.keys()
    assert server.runs[0]["info"]["status"] == "FINISHED"


def test_scores_are_assessments_on_the_traces_that_are_there(run: Path) -> None:
    with FakeMlflow(*THERE) as server:
        assert MLFLOW.send(f"{server.origin}#others", run).endswith("6 assessments on 3 traces; 1 trace is not there")
    assert server.experiments == ["others"]
    found = server.assessments[THERE[0]]
    assert {each["assessment_name"]: each["feedback"]["value"] for each in found} == pytest.approx(
        {"faithfulness": 0.5, "noise_sensitivity": 0.4}
    )
    assert {each["metadata"]["rag_assay.row_id"] for each in found} == {"row-00"}
    assert {each["metadata"]["mlflow.assessment.sourceRunId"] for each in found} == {server.run_id}
    assert {each["source"]["source_type"] for each in found} <= {"CODE", "LLM_JUDGE"}
    assert server.linked == [*THERE]


def test_what_is_sent_again_changes_nothing(run: Path) -> None:
    with FakeMlflow(*THERE) as server:
        MLFLOW.send(server.origin, run)
        before = counts(server)
        MLFLOW.send(server.origin, run)
        assert counts(server) == before


@pytest.mark.parametrize("dies_after", range(0, 10, 3))
def test_what_a_server_lacked_when_it_died_is_sent_later_and_nothing_twice(run: Path, dies_after: int) -> None:
    with FakeMlflow(*THERE) as whole:
        MLFLOW.send(whole.origin, run)
    with FakeMlflow(*THERE, dies_after=dies_after) as server:
        with pytest.raises(SinkError) as caught:
            MLFLOW.send(server.origin, run)
        assert not caught.value.is_lasting
        server.dies_after = None
        MLFLOW.send(server.origin, run)
        assert counts(server) == counts(whole)


def test_a_server_that_cannot_be_reached_says_so_soon(run: Path) -> None:
    before = dict(os.environ)
    with FakeMlflow() as server:
        address = server.origin
    with pytest.raises(SinkError, match=r"^it cannot be reached$") as caught:
        MLFLOW.send(address, run)
    assert not caught.value.is_lasting
    assert dict(os.environ) == before


def test_a_run_that_was_deleted_there_is_not_created_again(run: Path) -> None:
    with FakeMlflow() as server:
        MLFLOW.send(server.origin, run)
        server.runs[0]["info"]["lifecycle_stage"] = "deleted"
        with pytest.raises(SinkError, match="was deleted there") as caught:
            MLFLOW.send(server.origin, run)
    assert caught.value.is_lasting
    assert len(server.runs) == 1


@pytest.mark.parametrize("address", ["localhost:5000", "http://localhost:5000/#/experiments/1", ""])
def test_an_address_that_cannot_be_one_is_refused_before_the_run(address: str) -> None:
    with pytest.raises(ConfigError, match="looks like http://localhost:5000"):
        find_sink("mlflow").check(address)
    assert split_experiment("http://localhost:5000#a b") == ("http://localhost:5000", "a b")


def test_without_mlflow_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    find_sink("mlflow").check("http://localhost:5000")
    monkeypatch.setattr(mlflow_sink, "find_spec", lambda _name: None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'rag-assay\[mlflow\]'"):
        MLFLOW.check("http://localhost:5000")
