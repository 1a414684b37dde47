"""The traces of the example program give the rows and the scores of its own table."""

import json
import runpy
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from tasks.sources import SourceOptions, read_samples
from tests.deployments.trace_receiver.serving import serve_receiver
from tests.tasks.sources.traces.builders import Recorder, frame, otlp, otlp_json, read_traces

EXAMPLES = Path(__file__).parents[2] / "examples"
COLUMNS = (
    "user_input",
    "response",
    "retrieved_contexts",
    "retrieved_context_ids",
    "retrieved_context_scores",
    "session_id",
)


@pytest.fixture(scope="module")
def bot() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / "handbook_bot.py"))


@pytest.fixture(scope="module")
def bot_run(bot: dict[str, Any]) -> tuple[Recorder, list[dict[str, Any]]]:
    """The spans of the program, and the rows that it returned itself."""
    recorder, handbook = Recorder(), bot["Handbook"](EXAMPLES / "handbook")
    questions = list(bot["questions"]())[:4]
    return recorder, [bot["answer"](question, session, handbook, recorder.tracer) for question, session in questions]


def table(rows: list[dict[str, Any]], path: Path) -> list[dict[str, Any]]:
    """Return the samples of the table that the program would have written."""
    path.write_text("".join(json.dumps({"row_id": row["trace_id"], **row}) + "\n" for row in rows))
    return [row for samples in read_samples(path, SourceOptions(), {}) for row in samples.to_pylist()]


def essence(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: row[name] for name in ("row_id", *COLUMNS)} for row in rows]


@pytest.mark.parametrize("form", ["json", "protobuf"])
def test_exported_spans_give_the_rows_of_the_table(
    form: str, bot_run: tuple[Recorder, list[dict[str, Any]]], tmp_path: Path
) -> None:
    recorder, rows = bot_run
    if form == "json":
        path = tmp_path / "traces.json"
        path.write_text(json.dumps(otlp_json(recorder.spans)))
    else:
        path = tmp_path / "traces.binpb"
        path.write_bytes(frame(*(otlp([span]).SerializeToString() for span in recorder.spans)))
    assert essence(read_traces(path)[1]) == essence(table(rows, tmp_path / "rows.jsonl"))


def test_the_program_writes_traces(bot: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "traces.jsonl"
    monkeypatch.setattr("sys.argv", ["handbook_bot.py", str(path)])
    bot["main"]()
    reader, rows = read_traces(path)
    assert [row["user_input"] for row in rows] == [question for question, _ in bot["questions"]()]
    assert all(row["extras"]["service.name"] == "handbook-bot" for row in rows)
    assert reader.warnings == []


@pytest.mark.prefect
@pytest.mark.models
def test_scores_are_those_of_the_table(
    bot_run: tuple[Recorder, list[dict[str, Any]]], prefect_stub: object, tmp_path: Path
) -> None:
    del prefect_stub  # the flow needs it
    recorder, rows = bot_run
    table(rows, tmp_path / "rows.jsonl")
    (tmp_path / "traces.json").write_text(json.dumps(otlp_json(recorder.spans)))
    (tmp_path / "traces.pb").write_bytes(otlp(recorder.spans).SerializeToString())
    with serve_receiver(tmp_path / "received") as url:
        exporter = OTLPSpanExporter(url)
        exporter.export(recorder.spans)
        exporter.shutdown()  # type: ignore[no-untyped-call]
    traces = [f"traces:{tmp_path / name}" for name in ("traces.json", "traces.pb", "received")]
    metrics = ("faithfulness", "context_relevancy")
    scores = []
    for number, source in enumerate([str(tmp_path / "rows.jsonl"), *traces]):
        config = RunConfig(source=source, metrics=metrics, out=str(tmp_path / f"run-{number}"))
        found = pq.read_table(Path(run_evaluation(config).folder) / "scores.parquet").to_pylist()
        scores.append([(cell["row_id"], cell["metric"], cell["value"], cell["status"]) for cell in found])
    direct, *others = scores
    assert len(direct) == 2 * len(rows)
    assert {status for *_, status in direct} == {"scored"}
    assert others == [direct] * 3
