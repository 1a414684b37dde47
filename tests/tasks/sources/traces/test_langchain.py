"""Rows of a program of LangChain that the instrumentor of OpenInference and the tracer of LangSmith recorded."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import pytest
from langchain_core.tracers import Run
from langchain_core.tracers.context import collect_runs
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import format_span_id, format_trace_id

from metric_core.errors import SourceError
from tasks.sources.traces.attributes import _nest
from tests.tasks.sources.traces.builders import Recorder, otlp, otlp_json, read_traces, write_json_lines
from tests.tasks.sources.traces.langchain_program import ANSWER, PROGRAMS, QUESTION

pytestmark = pytest.mark.filterwarnings(
    "ignore:Calling .text"  # by the instrumentor
)
Recorded = tuple[Sequence[ReadableSpan], Sequence[Run]]
Write = Callable[[Recorded, Path], Path]


@pytest.fixture(scope="module")
def records() -> dict[str, Recorded]:
    """Run every program once, and return what was recorded of it."""
    found: dict[str, Recorded] = {}
    for name, program in PROGRAMS.items():
        recorder, instrumentor = Recorder(), LangChainInstrumentor()
        instrumentor.instrument(tracer_provider=recorder.provider)
        try:
            with collect_runs() as runs:
                program()
        finally:
            instrumentor.uninstrument()
        found[name] = recorder.spans, runs.traced_runs
    return found


def write_protobuf(recorded: Recorded, folder: Path) -> Path:
    (folder / "traces.pb").write_bytes(otlp(recorded[0]).SerializeToString())
    return folder / "traces.pb"


def write_json(recorded: Recorded, folder: Path) -> Path:
    return write_json_lines(folder / "traces.jsonl", [otlp_json([span]) for span in recorded[0]])


def write_console(recorded: Recorded, folder: Path) -> Path:
    return write_json_lines(folder / "traces.jsonl", [span.to_json(indent=None) for span in recorded[0]])


def frame_of(spans: Sequence[ReadableSpan]) -> pd.DataFrame:
    """Return spans as a data frame of Phoenix."""
    return pd.DataFrame(
        {
            "context.trace_id": format_trace_id(span.context.trace_id),
            "context.span_id": format_span_id(span.context.span_id),
            "parent_id": None if span.parent is None else format_span_id(span.parent.span_id),
            "name": span.name,
            "start_time": pd.Timestamp(span.start_time, tz="UTC"),
            "end_time": pd.Timestamp(span.end_time, tz="UTC"),
            "status_code": span.status.status_code.name,
            **{f"attributes.{name}": value for name, value in _nest(span.attributes or {}).items()},
        }
        for span in spans
    )


def write_frame(recorded: Recorded, folder: Path) -> Path:
    frame_of(recorded[0]).to_parquet(folder / "spans.parquet", index=False)
    return folder / "spans.parquet"


def write_csv(recorded: Recorded, folder: Path) -> Path:
    frame_of(recorded[0]).to_csv(folder / "spans.csv", index=False)
    return folder / "spans.csv"


def write_langsmith(recorded: Recorded, folder: Path) -> Path:
    runs = list(recorded[1])
    for run in runs:
        runs += run.child_runs
    exclude = {"child_runs", "parent_run", "ls_client"}
    return write_json_lines(folder / "runs.jsonl", [run.model_dump_json(exclude=exclude) for run in runs])


BOTH, ONE = ["It opens at nine.", "It is red."], ["It is red."]
HISTORY = "User: Is there a shop?\nAssistant: In Dublin."
ROWS: dict[str, list[tuple[str, str, list[str] | None, str | None]]] = {
    "with_history": [(QUESTION, ANSWER, BOTH, HISTORY)],
    "with_messages": [(QUESTION, ANSWER, None, HISTORY)],
    "with_a_tool": [(QUESTION, ANSWER, None, None)],
    "only_a_call": [],
    "fail": [],
    "retry": [(QUESTION, ANSWER, BOTH, None)],
    "fall_back": [(QUESTION, ANSWER, BOTH, None)],
    "in_parallel": [(QUESTION, ANSWER, [*BOTH, "It is closed on Sundays."], None)],
    "rerank": [(QUESTION, ANSWER, ONE, None)],
    "rerank_in_the_chain": [(QUESTION, ANSWER, ONE, None)],
    "stream": [(QUESTION, ANSWER, BOTH, None)],
    "cut_off": [(QUESTION, ANSWER, BOTH, None)],
    "with_a_message": [(QUESTION, ANSWER, BOTH, None)],
    "with_sources": [(QUESTION, ANSWER, BOTH, None)],
    "in_a_batch": [(QUESTION, ANSWER, BOTH, None), ("And on Sunday?", "Never.", BOTH, None)],
}
REASONS = {"fail": "no answer: it ended with an error", "only_a_call": "no answer"}


@pytest.mark.parametrize("write", [write_protobuf, write_json, write_console, write_frame, write_csv, write_langsmith])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_gives_the_same_rows_in_every_form(
    program: str, write: Write, records: dict[str, Recorded], tmp_path: Path
) -> None:
    path = write(records[program], tmp_path)
    if program in REASONS:
        with pytest.raises(SourceError, match="the only row") as caught:
            read_traces(path)
        assert str(caught.value).endswith(REASONS[program])
        return
    reader, rows = read_traces(path)
    names = ("user_input", "response", "retrieved_contexts", "earlier_turns")
    assert [tuple(row[name] for name in names) for row in rows] == ROWS[program]
    assert (reader.bad_rows, reader.warnings) == ([], [])


def test_programs_together_are_rows_and_left_out_traces(records: dict[str, Recorded], tmp_path: Path) -> None:
    messages = [otlp_json(spans) for spans, _ in records.values()]
    reader, rows = read_traces(write_json_lines(tmp_path / "traces.jsonl", messages))
    assert len(rows) == sum(map(len, ROWS.values()))
    assert sorted(bad.problem for bad in reader.bad_rows) == sorted(REASONS.values())
    assert {row["response"] for row in rows} == {ANSWER, "Never."}
    assert json.dumps(rows).count("tool_use") == 0
