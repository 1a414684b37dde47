"""Figures of recorded traces, from the files of two frameworks to summary, terminal, report, history and gauges."""

import json
from pathlib import Path

import pytest

from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from flows.publishing.metrics_file import describe_figures
from tasks.figures.figure_quantiles import FigureQuantiles
from tasks.figures.figures_finding import FIGURES
from tasks.findings.finding import RunRecords
from tasks.history.run_entry import read_run_entry
from tasks.runs.finished_run import FinishedRun
from tests.tasks.sources.traces.builders import read_traces
from tests.tasks.sources.traces.test_recorded import RECORDED


@pytest.mark.prefect
def test_latency_and_tokens_of_recorded_traces_are_figures(prefect_stub: object, tmp_path: Path) -> None:
    del prefect_stub  # the flow needs it
    _, rows = read_traces(RECORDED)
    seconds = sorted(row["extras"]["latency"] for row in rows)
    assert len(seconds) == 3
    with_tokens = [row["extras"]["tokens"] for row in rows if "tokens" in row["extras"]]
    for row in rows:
        parts = [row["extras"].get(name) for name in ("prompt_tokens", "output_tokens")]
        assert row["extras"].get("tokens") == (sum(map(int, filter(None, parts))) if parts != [None, None] else None)
    metrics = ("latency", "tokens", "retrieved")
    config = RunConfig(source=f"traces:{RECORDED}", metrics=metrics, out=str(tmp_path / "run"))
    run = FinishedRun(Path(run_evaluation(config).folder))
    found = run.summary.find_all(FigureQuantiles)
    assert {metric: figure.rows for metric, figure in found.items() if figure.rows} == {
        "latency": 3,
        **({"tokens": len(with_tokens)} if with_tokens else {}),
        "retrieved": 3,
    }
    latency = found["latency"].quantiles
    assert (latency["p50"].value, latency["p95"].value) == (seconds[1], seconds[2])
    assert latency["p95"].high is None, "three rows show no upper limit"
    [recorded] = [
        each for each in json.loads((run.folder / "run.json").read_text())["metrics"] if each["key"] == "latency"
    ]
    assert recorded["bounds"] == [0.0, None]
    records = RunRecords(run.record, run.summary, run.folder)
    assert next(iter(FIGURES.lines(records))).startswith("latency: p50 ")
    assert "Figures of the system" in (run.folder / "report.html").read_text(encoding="utf-8")
    kept = {each.metric: each.mean for each in read_run_entry(run.folder).metrics}
    assert (kept["latency.p50"], kept["latency.p95"]) == (seconds[1], seconds[2])
    assert (
        'assay_quantile{deployment="",index="",metric="latency",quantile="0.95"}'
        in describe_figures(run.folder).decode()
    )
