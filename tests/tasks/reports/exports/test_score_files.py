"""Scores with the fields of observability products."""

import csv
import io
import json
from pathlib import Path
from uuid import UUID

import pytest

from metric_core.errors import ConfigError
from metric_core.records import Score
from metric_core.stages import Stage
from tasks.reports.exports.score_tables import Format, Shape, reshape, write_export
from tests.tasks.reports import folders
from tests.tasks.sources.traces.builders import read_traces, write_json_lines
from tests.tasks.sources.traces.test_products import LANGFUSE_TRACE

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
METRICS = {name: folders.METRICS[name] for name in ("faithfulness", "house_style")}


def write_run(folder: Path, *, traced: bool = True, span: str = SPAN) -> Path:
    origin = {"trace_id": TRACE, "span_id": span} if traced else {}
    samples = [
        {
            "row_id": "a",
            "session_id": "s1",
            "extras": json.dumps(origin),
        },
        {"row_id": "b"},
    ]
    scores = {
        "a": {"faithfulness": Score.scored(0.5), "house_style": Score.labelled("formal")},
        "b": {"faithfulness": Score.scored(1.0), "house_style": Score.undefined("no style")},
    }
    rows = [{"row_number": number, **sample} for number, sample in enumerate(samples, start=1)]
    return folders.write_run(folder, scores, {Stage.SAMPLES: rows}, METRICS, {"status": "completed"})


def test_langfuse_gets_a_score_per_scored_cell_of_a_trace(tmp_path: Path) -> None:
    number, label = reshape(write_run(tmp_path / "run"), Shape.LANGFUSE).to_pylist()
    where = {"traceId": TRACE, "observationId": SPAN, "sessionId": "s1", "comment": None}
    assert number.pop("id") != label.pop("id")
    assert number == {**where, "name": "faithfulness", "value": 0.5, "stringValue": None, "dataType": "NUMERIC"}
    assert label == {**where, "name": "house_style", "value": None, "stringValue": "formal", "dataType": "CATEGORICAL"}


def test_the_score_of_a_whole_trace_names_no_observation(tmp_path: Path) -> None:
    _, [read] = read_traces(write_json_lines(tmp_path / "traces.jsonl", [{**LANGFUSE_TRACE, "id": TRACE}]))
    assert read["extras"]["trace_id"] == TRACE
    number, _ = reshape(write_run(tmp_path / "run", span=read["extras"]["span_id"]), Shape.LANGFUSE).to_pylist()
    assert (number["traceId"], number["observationId"]) == (TRACE, None)
    feedback, _ = reshape(tmp_path / "run", Shape.LANGSMITH).to_pylist()
    assert (feedback["run_id"], feedback["trace_id"]) == (TRACE, TRACE)  # a root run has the id of its trace


def test_langsmith_gets_feedback_with_ids_of_its_form(tmp_path: Path) -> None:
    number, label = reshape(write_run(tmp_path / "run"), Shape.LANGSMITH).to_pylist()
    assert UUID(number.pop("id")) != UUID(label.pop("id"))
    where = {"run_id": SPAN, "trace_id": TRACE, "comment": None}
    assert number == {**where, "key": "faithfulness", "score": 0.5, "value": None}
    assert label == {**where, "key": "house_style", "score": None, "value": "formal"}


@pytest.mark.parametrize("shape", [Shape.LANGFUSE, Shape.LANGSMITH])
def test_importing_a_run_again_replaces_its_scores(tmp_path: Path, shape: Shape) -> None:
    first = reshape(write_run(tmp_path / "run"), shape)["id"].to_pylist()
    assert reshape(write_run(tmp_path / "again" / "run"), shape)["id"].to_pylist() == first
    assert set(reshape(write_run(tmp_path / "other"), shape)["id"].to_pylist()).isdisjoint(first)


def test_the_table_is_written_as_csv(tmp_path: Path) -> None:
    target = io.BytesIO()
    write_export(reshape(write_run(tmp_path / "run"), Shape.LANGFUSE), target, Format.CSV)
    rows = list(csv.DictReader(io.StringIO(target.getvalue().decode())))
    assert [(row["traceId"], row["name"], row["value"]) for row in rows] == [
        (TRACE, "faithfulness", "0.5"),
        (TRACE, "house_style", ""),
    ]


def test_a_run_whose_rows_came_from_no_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="evaluate `traces:PATH`, or data with the columns trace_id and span_id"):
        reshape(write_run(tmp_path / "run", traced=False), Shape.LANGSMITH)
