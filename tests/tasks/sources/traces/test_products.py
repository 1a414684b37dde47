"""Exports of Langfuse, LangSmith and Phoenix in their documented forms, with broken, partial and duplicate records."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.tasks.sources.traces.builders import read_traces, write_json_lines

Record = dict[str, Any]
QUESTION, ANSWER = "When does it open?", "At nine."
TEXTS, IDS = ["It opens at nine.", "It is red."], ["a.md", "b.md"]
DOCUMENTS = [
    {"page_content": text, "type": "Document", "metadata": {"source": name}}
    for text, name in zip(TEXTS, IDS, strict=True)
]
PROMPT = [{"role": "system", "content": "\n".join(TEXTS)}, {"role": "user", "content": QUESTION}]

# As the API and the export of the pages have them; blob storage has the same fields in snake case.
LANGFUSE_TRACE: Record = {
    "id": "trace-1",
    "timestamp": "2026-05-01T10:00:00.000Z",
    "name": "ask",
    "userId": "u1",
    "sessionId": "s1",
    "release": None,
    "version": None,
    "environment": "production",
    "tags": ["web"],
    "bookmarked": False,
    "public": False,
    "input": {"question": QUESTION},
    "output": {"answer": ANSWER},
    "metadata": {"customer": "acme"},
    "latency": 1.5,
    "usage": {"promptTokens": 20, "completionTokens": 3, "totalTokens": 23},
}


def observation(number: int, kind: str, **fields: Any) -> Record:
    return {
        "id": f"obs-{number}",
        "traceId": "trace-1",
        "type": kind,
        "parentObservationId": None,
        "startTime": f"2026-05-01T10:00:00.{number}00Z",
        "endTime": f"2026-05-01T10:00:00.{number}50Z",
        "name": kind.lower(),
        "level": "DEFAULT",
        "metadata": {},
        **fields,
    }


LANGFUSE_OBSERVATIONS: list[Record] = [
    observation(1, "RETRIEVER", input=QUESTION, output=DOCUMENTS),
    observation(2, "TOOL", input={"at": "now"}, output="08:30"),
    observation(
        3,
        "GENERATION",
        input=PROMPT,
        output={"role": "assistant", "content": ANSWER},
        model="small-1",
        usageDetails={"input": 20, "output": 3, "total": 23},
    ),
    observation(4, "EVENT", parentObservationId="obs-3", input=None, output=None),
]


def snake(record: Mapping[str, Any]) -> Record:
    """Return a record as blob storage has it: inputs and outputs are text."""
    names = {"".join(f"_{c.lower()}" if c.isupper() else c for c in name): value for name, value in record.items()}
    names |= {name: json.dumps(names[name]) for name in ("input", "output") if isinstance(names.get(name), dict | list)}
    return {("provided_model_name" if name == "model" else name): value for name, value in names.items()}


def write_csv(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    names = list(dict.fromkeys(name for record in records for name in record))
    with path.open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(names)
        for record in records:
            cells = [record.get(name) for name in names]
            writer.writerow(
                ["" if c is None else c if isinstance(c, str | int | float) else json.dumps(c) for c in cells]
            )


def write_parquet(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    names = dict.fromkeys(name for record in records for name in record)
    pq.write_table(pa.Table.from_pylist([dict.fromkeys(names) | dict(record) for record in records]), path)


def check(row: Mapping[str, Any], row_id: str, session: str | None) -> None:
    """Check what every product's export of the same trace gives."""
    assert (row["row_id"], row["user_input"], row["response"], row["session_id"]) == (row_id, QUESTION, ANSWER, session)
    assert (row["retrieved_contexts"], row["retrieved_context_ids"]) == (TEXTS, IDS)
    assert row["tool_results"] == ["08:30"]
    assert (row["extras"]["prompt_tokens"], row["extras"]["output_tokens"]) == (20, 3)
    assert row["extras"]["model"] == "small-1"
    assert row["extras"]["metadata"] == {"customer": "acme"}


def langfuse_forms(folder: Path) -> dict[str, Path]:
    """Write the forms that Langfuse exports, and return the files and folders."""
    trace, observations = LANGFUSE_TRACE, LANGFUSE_OBSERVATIONS
    for name in ("blob", "pages", "parquet"):
        (folder / name).mkdir()
    (folder / "trace.json").write_text(json.dumps({"trace": trace, "observations": observations}))
    (folder / "api.json").write_text(
        json.dumps({**trace, "observations": observations, "scores": [], "htmlPath": "/x"})
    )
    write_json_lines(folder / "blob" / "traces.jsonl", [snake(trace)])
    write_json_lines(folder / "blob" / "observations.jsonl", [snake(each) for each in observations])
    scores = {"id": "x", "trace_id": "trace-1", "data_type": "NUMERIC", "value": 1, "source": "API", "timestamp": "-"}
    write_json_lines(folder / "blob" / "scores.jsonl", [scores])
    write_csv(folder / "pages" / "traces.csv", [trace])
    write_csv(folder / "pages" / "observations.csv", observations)
    write_parquet(folder / "parquet" / "traces.parquet", [snake(trace)])
    write_parquet(
        folder / "parquet" / "observations.parquet", [{**snake(each), "metadata": "{}"} for each in observations]
    )
    return {name: folder / name for name in ("trace.json", "api.json", "blob", "pages", "parquet")}


@pytest.mark.parametrize("name", ["trace.json", "api.json", "blob", "pages", "parquet"])
def test_langfuse(name: str, tmp_path: Path) -> None:
    reader, [row] = read_traces(langfuse_forms(tmp_path)[name])
    check(row, "trace-1", "s1")
    assert row["extras"]["latency"] == 1.5
    assert row["extras"]["environment"] == "production"
    assert row["extras"]["user_id"] == "u1"
    assert reader.warnings == (["1 score of Langfuse is not read"] if name == "blob" else [])


def test_damaged_exports_of_langfuse_are_counted(tmp_path: Path) -> None:
    records = [
        LANGFUSE_TRACE,
        *LANGFUSE_OBSERVATIONS,
        LANGFUSE_OBSERVATIONS[2],
        '{"id": "trace-2", "timest',
        {**LANGFUSE_TRACE, "id": "trace-3", "output": None},
        {**LANGFUSE_OBSERVATIONS[1], "traceId": "trace-4", "parentObservationId": "gone"},
    ]
    reader, [row] = read_traces(write_json_lines(tmp_path / "export.jsonl", records))
    check(row, "trace-1", "s1")
    assert reader.warnings == [
        "1 record cannot be read and is left out",
        "1 trace left out: no answer",
        "1 trace left out: partial trace: the span that it begins with is missing",
        "1 duplicate span is read once",
    ]
    assert reader.bad_row_count == 3


def run(number: int, kind: str, inputs: Any, outputs: Any, **fields: Any) -> Record:
    """A run in the documented data format of LangSmith."""
    ids = [f"00000000-0000-4000-8000-00000000000{each}" for each in (0, number)]
    root = f"20260501T100000000000Z{ids[0]}"
    return {
        "id": ids[1],
        "name": kind,
        "run_type": kind,
        "inputs": inputs,
        "outputs": outputs,
        "start_time": f"2026-05-01T10:00:00.{number}00000",
        "end_time": f"2026-05-01T10:00:00.{number}50000",
        "trace_id": ids[0],
        "parent_run_id": None if number == 0 else ids[0],
        "dotted_order": root if number == 0 else f"{root}.20260501T100000{number}00000Z{ids[1]}",
        "session_id": "11111111-0000-4000-8000-000000000000",
        "status": "success",
        "error": None,
        "extra": {},
        "tags": [],
        "prompt_tokens": 0,
        "completion_tokens": 0,
        **fields,
    }


def message(kind: str, text: str) -> Record:
    """A message as LangChain serializes it."""
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", kind],
        "kwargs": {"content": text},
    }


RUNS: list[Record] = [
    run(
        0,
        "chain",
        {"input": QUESTION},
        {"output": ANSWER},
        end_time="2026-05-01T10:00:01.500000",
        extra={"metadata": {"customer": "acme", "thread_id": "t1"}},
        prompt_tokens=20,
        completion_tokens=3,
    ),
    run(1, "retriever", {"query": QUESTION}, {"documents": DOCUMENTS}),
    run(2, "tool", {"input": "now"}, {"output": "08:30"}),
    run(
        3,
        "llm",
        {"messages": [[message("SystemMessage", "\n".join(TEXTS)), message("HumanMessage", QUESTION)]]},
        {"generations": [[{"text": ANSWER, "message": message("AIMessage", ANSWER)}]]},
        extra={"metadata": {"ls_model_name": "small-1"}},
        prompt_tokens=20,
        completion_tokens=3,
    ),
]
ROOT_ID = RUNS[0]["id"]


def langsmith_forms(folder: Path) -> dict[str, Path]:
    """Write the forms that LangSmith and its client export."""
    write_json_lines(folder / "runs.jsonl", RUNS)
    texts = [
        {name: json.dumps(value) if isinstance(value, dict | list) else value for name, value in each.items()}
        for each in RUNS
    ]
    pq.write_table(
        pa.Table.from_pylist([{**each, "is_root": not each["parent_run_id"]} for each in texts]),
        folder / "bulk.parquet",
    )
    write_csv(folder / "runs.csv", [{name: each[name] for name in each if name != "trace_id"} for each in RUNS])
    (folder / "tree.json").write_text(json.dumps({**RUNS[0], "child_runs": [dict(each) for each in RUNS[1:]]}))
    return {path.name: path for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["runs.jsonl", "bulk.parquet", "runs.csv", "tree.json"])
def test_langsmith(name: str, tmp_path: Path) -> None:
    reader, [row] = read_traces(langsmith_forms(tmp_path)[name])
    metadata = row["extras"]["metadata"]
    assert metadata.pop("thread_id") == "t1"
    check(row, ROOT_ID, "t1")
    assert row["extras"]["latency"] == 1.5
    assert row["extras"]["status"] == "success"
    assert reader.warnings == []


def test_damaged_exports_of_langsmith_are_counted(tmp_path: Path) -> None:
    failed = {**RUNS[0], "id": "f", "trace_id": "f", "outputs": None, "status": "error", "error": "timeout"}
    records = [
        *RUNS,
        RUNS[1],
        RUNS[3],
        failed,
        {**RUNS[1], "trace_id": "p", "parent_run_id": "missing"},
        {**RUNS[1], "trace_id": None, "dotted_order": "", "parent_run_id": "missing"},
        '{"id": "b", "run_type',
    ]
    reader, [row] = read_traces(write_json_lines(tmp_path / "runs.jsonl", records))
    assert row["response"] == ANSWER
    assert reader.warnings == [
        "2 records cannot be read and are left out",
        "1 trace left out: no answer: it ended with an error",
        "1 trace left out: partial trace: the span that it begins with is missing",
        "2 duplicate spans are read once",
    ]
    assert reader.bad_rows[2].problem.startswith("a run has neither trace_id nor dotted_order")


def phoenix(number: int, kind: str, **attributes: Any) -> Record:
    """A span as a row of Phoenix's data frame."""
    return {
        "context.span_id": f"{number:016x}",
        "context.trace_id": "a" * 32,
        "parent_id": None if number == 0 else f"{0:016x}",
        "name": kind.lower(),
        "span_kind": kind,
        "start_time": f"2026-05-01T10:00:00.{number}00000+00:00",
        "end_time": f"2026-05-01T10:00:00.{number}50000+00:00" if number else "2026-05-01T10:00:01.500000+00:00",
        "status_code": "OK",
        "status_message": "",
        "events": [],
        **{f"attributes.{name}": value for name, value in attributes.items()},
    }


PHOENIX: list[Record] = [
    phoenix(
        0,
        "CHAIN",
        **{"input.value": QUESTION, "output.value": ANSWER, "session.id": "s1", "metadata": {"customer": "acme"}},
    ),
    phoenix(
        1,
        "RETRIEVER",
        **{
            "input.value": QUESTION,
            "retrieval.documents": [
                {"document.content": text, "document.id": name, "document.score": score}
                for text, name, score in zip(TEXTS, IDS, (0.5, 0.25), strict=True)
            ],
        },
    ),
    phoenix(2, "TOOL", **{"tool.name": "clock", "output.value": "08:30"}),
    phoenix(
        3,
        "LLM",
        **{
            "llm.model_name": "small-1",
            "llm.token_count.prompt": 20,
            "llm.token_count.completion": 3,
            "llm.input_messages": [
                {"message.role": each["role"], "message.content": each["content"]} for each in PROMPT
            ],
            "llm.output_messages": [{"message.role": "assistant", "message.content": ANSWER}],
        },
    ),
]


def phoenix_forms(folder: Path, spans: Sequence[Record] = PHOENIX) -> dict[str, Path]:
    """Write the forms in which Phoenix gives spans."""
    import pandas as pd

    frame = pd.DataFrame(spans)
    frame.to_csv(folder / "spans.csv", index=False)  # lists of objects as Python writes them
    if not any(isinstance(each.get("attributes.input.value"), dict) for each in spans):
        frame.set_index("context.span_id", drop=False).to_parquet(folder / "spans.parquet", index=False)
    write_json_lines(folder / "spans.jsonl", [{k: v for k, v in each.items() if v is not None} for each in spans])
    replied = [
        {
            "id": "U3Bhbjox",
            "name": each["name"],
            "context": {"trace_id": each["context.trace_id"], "span_id": each["context.span_id"]},
            "parent_id": each["parent_id"],
            "span_kind": each["span_kind"],
            "start_time": each["start_time"],
            "end_time": each["end_time"],
            "status_code": "OK",
            "attributes": {
                name.removeprefix("attributes."): value for name, value in each.items() if "attributes." in name
            },
            "events": [],
        }
        for each in spans
    ]
    (folder / "reply.json").write_text(json.dumps({"data": replied, "next_cursor": None}))
    return {path.name: path for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["spans.csv", "spans.parquet", "spans.jsonl", "reply.json"])
def test_phoenix(name: str, tmp_path: Path) -> None:
    reader, [row] = read_traces(phoenix_forms(tmp_path)[name])
    check(row, "a" * 32, "s1")
    assert row["retrieved_context_scores"] == [0.5, 0.25]
    assert row["extras"]["latency"] == 1.5
    assert reader.warnings == []


@pytest.mark.parametrize(
    ("name", "as_object"),
    [
        *((name, False) for name in ("spans.csv", "spans.parquet", "spans.jsonl", "reply.json")),
        *((name, True) for name in ("spans.jsonl", "reply.json")),
    ],
)
def test_inputs_of_phoenix_that_are_json_are_read(name: str, as_object: bool, tmp_path: Path) -> None:
    given: Any = {"question": QUESTION, "chat_history": [["Hi!", "Hello."]]}
    made: Any = {"answer": ANSWER, "context": TEXTS}
    if not as_object:
        given, made = json.dumps(given), json.dumps(made)
    root = {**PHOENIX[0], "attributes.input.value": given, "attributes.output.value": made}
    _, [row] = read_traces(phoenix_forms(tmp_path, [root, *PHOENIX[1:]])[name])
    check(row, "a" * 32, "s1")
    assert row["earlier_turns"] == "User: Hi!\nAssistant: Hello."
    assert not any(name.startswith("input.") for name in row["extras"])


def test_damaged_exports_of_phoenix_are_counted(tmp_path: Path) -> None:
    records = [
        *PHOENIX,
        *PHOENIX[1:3],
        {**PHOENIX[0], "context.trace_id": "b", "attributes.output.value": None},
        {**PHOENIX[3], "context.trace_id": "c"},
        {**PHOENIX[0], "context.span_id": None},
        '{"context.span_id"',
    ]
    reader, [row] = read_traces(write_json_lines(tmp_path / "spans.jsonl", records))
    assert row["response"] == ANSWER
    assert sorted(reader.warnings) == [
        "1 trace left out: no answer",
        "1 trace left out: partial trace: the span that it begins with is missing",
        "2 duplicate spans are read once",
        "2 records cannot be read and are left out",
    ]
    assert reader.bad_row_count == 4
