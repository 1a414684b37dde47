"""Spans of the OpenTelemetry SDK, in the conventions and the forms of the protocol, become rows."""

import gzip
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import Status, StatusCode

from metric_core.errors import MissingDependencyError, SourceError
from tasks.sources.traces.record_forms import FORMS
from tests.tasks.sources.traces.builders import Recorder, frame, otlp, otlp_json, read_traces, write_json_lines

QUESTION, ANSWER = "When does it open?", "At nine."


def record(recorder: Recorder, question: str = QUESTION) -> None:
    """Record a trace in OpenInference: a chain, a retriever, a reranker, a tool and a model."""
    tracer = recorder.tracer
    with tracer.start_as_current_span("rag") as chain:
        chain.set_attributes(
            {
                "openinference.span.kind": "CHAIN",
                "input.value": json.dumps({"question": question}),
                "input.mime_type": "application/json",
                "output.value": ANSWER,
                "session.id": "s1",
                "metadata": '{"customer": "acme"}',
                "tag.tags": ["a", "b"],
            }
        )
        with tracer.start_as_current_span("search") as span:
            span.set_attributes({"openinference.span.kind": "RETRIEVER", "input.value": question})
            for place, (text, score) in enumerate([("Soup.", 0.5), ("It opens at nine.", 0.25), ("It is red.", 0.125)]):
                span.set_attributes(
                    {
                        f"retrieval.documents.{place}.document.content": text,
                        f"retrieval.documents.{place}.document.id": f"d{place}",
                        f"retrieval.documents.{place}.document.score": score,
                        f"retrieval.documents.{place}.document.metadata": '{"source": "a.md"}',
                    }
                )
        with tracer.start_as_current_span("rerank") as span:
            span.set_attributes({"openinference.span.kind": "RERANKER", "reranker.query": question})
            for place, (text, score) in enumerate([("It opens at nine.", 0.9), ("Soup.", 0.1)]):
                span.set_attributes(
                    {
                        f"reranker.output_documents.{place}.document.content": text,
                        f"reranker.output_documents.{place}.document.id": f"d{1 - place}",
                        f"reranker.output_documents.{place}.document.score": score,
                    }
                )
        with tracer.start_as_current_span("clock") as span:
            span.set_attributes({"openinference.span.kind": "TOOL", "tool.name": "clock", "output.value": "08:30"})
        with tracer.start_as_current_span("chat") as span:
            span.set_attributes(
                {
                    "openinference.span.kind": "LLM",
                    "llm.model_name": "small-1",
                    "llm.token_count.prompt": 20,
                    "llm.token_count.completion": 3,
                    "llm.input_messages.0.message.role": "user",
                    "llm.input_messages.0.message.content": f"Soup.\nIt opens at nine.\n{question}",
                    "llm.output_messages.0.message.role": "assistant",
                    "llm.output_messages.0.message.content": ANSWER,
                }
            )


def varints(*messages: bytes) -> bytes:
    """Return messages, each after its size as a varint."""
    parts = []
    for message in messages:
        size, prefix = len(message), b""
        while size > 0x7F:
            prefix += bytes([size & 0x7F | 0x80])
            size >>= 7
        parts += [prefix + bytes([size]), message]
    return b"".join(parts)


def zstd(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return bytes(sink.getvalue())


Write = Callable[[Sequence[ReadableSpan]], bytes]
FILES: dict[str, Write] = {
    "traces.json": lambda spans: json.dumps(otlp_json(spans), indent=1).encode(),
    "traces.jsonl": lambda spans: b"".join(json.dumps(otlp_json([span])).encode() + b"\n" for span in spans),
    "lines.json": lambda spans: b"".join(json.dumps(otlp_json([span])).encode() + b"\n" for span in reversed(spans)),
    "traces.jsonl.gz": lambda spans: gzip.compress(json.dumps(otlp_json(spans)).encode()),
    "console.jsonl": lambda spans: b"".join(span.to_json(indent=None).encode() + b"\n" for span in spans),
    "request.pb": lambda spans: otlp(spans).SerializeToString(),
    "concatenated.binpb": lambda spans: b"".join(otlp([span]).SerializeToString() for span in spans),
    "collector.proto": lambda spans: frame(*(otlp([span]).SerializeToString() for span in spans)),
    "compressed.bin": lambda spans: frame(*(zstd(otlp([span]).SerializeToString()) for span in spans)),
    "collector.zst": lambda spans: frame(*(zstd(json.dumps(otlp_json([span])).encode()) for span in spans)),
    "whole.jsonl.zst": lambda spans: zstd(json.dumps(otlp_json(spans)).encode()),
    "delimited.otlp": lambda spans: varints(*(otlp([span]).SerializeToString() for span in spans)),
    "no_extension": lambda spans: otlp(spans).SerializeToString(),
}


@pytest.mark.parametrize("name", FILES)
def test_every_form_gives_the_same_row(name: str, tmp_path: Path) -> None:
    recorder = Recorder()
    record(recorder)
    (tmp_path / name).write_bytes(FILES[name](recorder.spans))
    reader, [row] = read_traces(tmp_path / name)
    chain = next(span for span in recorder.spans if span.name == "rag")
    assert row["row_id"] == f"{chain.context.trace_id:032x}"
    assert (row["user_input"], row["response"], row["session_id"]) == (QUESTION, ANSWER, "s1")
    # The reranker chose two; the model got them in this order.
    assert row["retrieved_contexts"] == ["Soup.", "It opens at nine."]
    assert row["retrieved_context_ids"] == ["d0", "d1"]
    assert row["retrieved_context_scores"] == [0.1, 0.9]
    assert row["tool_results"] == ["08:30"]
    extras = row["extras"]
    assert extras["span_id"] == f"{chain.context.span_id:016x}"
    assert extras["latency"] == pytest.approx(((chain.end_time or 0) - (chain.start_time or 0)) / 1e9, abs=2e-6)
    assert (extras["prompt_tokens"], extras["output_tokens"], extras["model"]) == (20, 3, "small-1")
    assert extras["metadata"] == {"customer": "acme"}
    assert extras["tag.tags"] == ["a", "b"]
    assert extras["service.name"] == "prod"
    assert reader.warnings == []
    assert reader.bad_rows == []


def gen_ai(recorder: Recorder, *, as_events: bool) -> None:
    """Record a trace in the GenAI conventions, with the messages as attributes or as an event."""
    messages = {
        "gen_ai.input.messages": json.dumps(
            [
                {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
                {"role": "user", "parts": [{"type": "text", "content": QUESTION}]},
            ]
        ),
        "gen_ai.output.messages": json.dumps(
            [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}], "finish_reason": "stop"}]
        ),
    }
    with recorder.tracer.start_as_current_span("POST /ask"):
        with recorder.tracer.start_as_current_span("retrieval kb") as span:
            span.set_attributes(
                {
                    "gen_ai.operation.name": "retrieval",
                    "gen_ai.data_source.id": "kb",
                    "gen_ai.retrieval.query.text": "opening hours",
                    "gen_ai.retrieval.documents": json.dumps(
                        [{"id": "doc_1", "score": 0.95}, {"id": "doc_2", "score": 0.5}]
                    ),
                }
            )
        with recorder.tracer.start_as_current_span("execute_tool clock") as span:
            span.set_attributes(
                {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": "clock",
                    "gen_ai.tool.call.result": "08:30",
                }
            )
        with recorder.tracer.start_as_current_span("chat small") as span:
            span.set_attributes(
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.provider.name": "openai",
                    "gen_ai.request.model": "small",
                    "gen_ai.response.model": "small-1",
                    "gen_ai.response.id": "chatcmpl-1",
                    "gen_ai.conversation.id": "conv_1",
                    "gen_ai.usage.input_tokens": 100,
                    "gen_ai.usage.output_tokens": 180,
                }
            )
            if as_events:
                span.add_event("gen_ai.client.inference.operation.details", messages)
            else:
                span.set_attributes(messages)


@pytest.mark.parametrize("as_events", [False, True])
def test_the_gen_ai_conventions(as_events: bool, tmp_path: Path) -> None:
    recorder = Recorder()
    gen_ai(recorder, as_events=as_events)
    _, [row] = read_traces(write_json_lines(tmp_path / "traces.jsonl", [otlp_json(recorder.spans)]))
    assert (row["user_input"], row["response"], row["session_id"]) == (QUESTION, ANSWER, "conv_1")
    assert row["retrieved_contexts"] is None  # the convention records ids and scores
    assert row["retrieved_context_ids"] == ["doc_1", "doc_2"]
    assert row["retrieved_context_scores"] == [0.95, 0.5]
    assert row["tool_results"] == ["08:30"]
    assert (row["extras"]["model"], row["extras"]["response_id"]) == ("small-1", "chatcmpl-1")
    assert (row["extras"]["prompt_tokens"], row["extras"]["output_tokens"]) == (100, 180)


def pairs(**values: Any) -> dict[str, Any]:
    return {"kvlistValue": {"values": [{"key": key, "value": value} for key, value in values.items()]}}


def test_messages_in_log_records_belong_to_their_spans(tmp_path: Path) -> None:
    recorder = Recorder()
    with recorder.tracer.start_as_current_span("chat small") as span:
        span.set_attribute("gen_ai.operation.name", "chat")
    context = recorder.spans[0].context
    ids = {"traceId": f"{context.trace_id:032x}", "spanId": f"{context.span_id:016x}"}
    logs = [
        {
            **ids,
            "eventName": name,
            "body": {"kvlistValue": {"values": [{"key": "content", "value": {"stringValue": text}}]}},
        }
        for name, text in (("gen_ai.system.message", "Be brief."), ("gen_ai.user.message", QUESTION))
    ]
    message = {
        "key": "message",
        "value": {"kvlistValue": {"values": [{"key": "content", "value": {"stringValue": ANSWER}}]}},
    }
    logs.append({**ids, "eventName": "gen_ai.choice", "body": {"kvlistValue": {"values": [message]}}})
    records = [{"resourceLogs": [{"scopeLogs": [{"logRecords": logs}]}]}, otlp_json(recorder.spans)]
    _, [row] = read_traces(write_json_lines(tmp_path / "traces.jsonl", records))
    assert (row["user_input"], row["response"]) == (QUESTION, ANSWER)


def test_earlier_gen_ai_attributes(tmp_path: Path) -> None:
    recorder = Recorder()
    with recorder.tracer.start_as_current_span("openai.chat") as span:
        span.set_attributes(
            {
                "gen_ai.prompt.0.role": "system",
                "gen_ai.prompt.0.content": "Be brief.",
                "gen_ai.prompt.1.role": "user",
                "gen_ai.prompt.1.content": QUESTION,
                "gen_ai.completion.0.role": "assistant",
                "gen_ai.completion.0.content": ANSWER,
                "gen_ai.usage.prompt_tokens": 7,
            }
        )
    _, [row] = read_traces(write_json_lines(tmp_path / "traces.jsonl", [otlp_json(recorder.spans)]))
    assert (row["user_input"], row["response"], row["extras"]["prompt_tokens"]) == (QUESTION, ANSWER, 7)


def test_what_cannot_be_read_is_counted_with_its_reason(tmp_path: Path) -> None:
    recorder = Recorder()
    record(recorder)
    with recorder.tracer.start_as_current_span("rag") as span:
        span.set_attributes({"openinference.span.kind": "CHAIN", "input.value": "Why?"})
    with recorder.tracer.start_as_current_span("rag") as span:
        span.set_attributes({"openinference.span.kind": "CHAIN", "input.value": "Why?"})
        span.set_status(Status(StatusCode.ERROR))
    with recorder.tracer.start_as_current_span("GET /health"):
        pass
    with recorder.tracer.start_as_current_span("rag") as span:
        span.set_attributes({"openinference.span.kind": "CHAIN", "output.value": "So."})
    record(recorder, "Without a root?")
    good, partial = recorder.spans[:5], [span for span in recorder.spans[-5:] if span.name != "rag"]
    path = write_json_lines(
        tmp_path / "traces.jsonl",
        [
            otlp_json(good),
            '{"resourceSpans": [{"scopeSp',
            {"resourceSpans": "none"},
            {"metrics": [1], "unit": "s"},
            otlp_json(good[1:3]),
            *(otlp_json([span]) for span in recorder.spans[5:9]),
            otlp_json(partial),
        ],
    )
    reader, [row] = read_traces(path)
    assert row["user_input"] == QUESTION
    assert [(bad.place.partition(" (")[2].removesuffix(")"), bad.problem) for bad in reader.bad_rows[-3:]] == [
        ("traces.jsonl, line 2", "invalid JSON: Unterminated string starting at character 21"),
        ("traces.jsonl, line 3", "the OTLP message is damaged: wanted a list of objects"),
        ("traces.jsonl, line 4", f"unknown form: an object with 'metrics', 'unit', wanted {FORMS}"),
    ]
    assert [bad.problem for bad in reader.bad_rows[:-3]] == [
        "no answer",
        "no answer: it ended with an error",
        "neither a question nor an answer: no span recorded texts",
        "no question",
        "partial trace: the span that it begins with is missing",
    ]
    assert all(bad.detail.startswith("trace ") for bad in reader.bad_rows[:-3])
    assert (reader.rows_read, reader.bad_row_count) == (9, 8)
    assert reader.warnings == [
        "3 records cannot be read and are left out",
        "1 trace left out: no answer",
        "1 trace left out: no answer: it ended with an error",
        "1 trace left out: neither a question nor an answer: no span recorded texts",
        "1 trace left out: no question",
        "1 trace left out: partial trace: the span that it begins with is missing",
        "2 duplicate spans are read once",
    ]


def test_a_part_of_a_distributed_trace_is_no_partial_trace(tmp_path: Path) -> None:
    recorder = Recorder()
    record(recorder)
    spans = otlp_json(recorder.spans)
    chain = spans["resourceSpans"][0]["scopeSpans"][0]["spans"][-1]
    chain |= {"parentSpanId": "00000000000000aa", "flags": 0x301}
    _, [row] = read_traces(write_json_lines(tmp_path / "traces.jsonl", [spans]))
    assert row["response"] == ANSWER


@pytest.mark.parametrize("write", [frame, varints])
def test_a_damaged_message_and_one_that_is_cut_off_leave_the_others(write: Any, tmp_path: Path) -> None:
    recorder = Recorder()
    for question in ("First?", "Second?", "Third?"):
        record(recorder, question)
    first, second, third = (otlp(recorder.spans[5 * n : 5 * n + 5]).SerializeToString() for n in range(3))
    (tmp_path / "a.pb").write_bytes(write(first, b"\xff\xff broken", second, third)[:-9])
    reader, rows = read_traces(tmp_path / "a.pb")
    assert [row["user_input"] for row in rows] == ["First?", "Second?"]
    assert [bad.detail for bad in reader.bad_rows] == ["a.pb, message 2", "a.pb, message 4"]
    assert reader.warnings == ["2 records cannot be read and are left out"]


def test_files_of_several_forms_are_one_source(tmp_path: Path) -> None:
    recorder = Recorder()
    record(recorder, "First?")
    record(recorder, "Second?")
    folder = tmp_path / "day"
    folder.mkdir()
    (folder / "a.pb").write_bytes(otlp(recorder.spans[:4]).SerializeToString())
    write_json_lines(folder / "b.jsonl", [otlp_json(recorder.spans[4:])])
    (folder / "notes.txt").write_text("x")
    reader, rows = read_traces(folder)
    assert [row["user_input"] for row in rows] == ["First?", "Second?"]
    assert reader.warnings == [f"{folder}: files of unknown formats are not read: 'notes.txt'"]
    assert [row["row_id"] for row in read_traces(tmp_path / "*/*.[jp]*")[1]] == [row["row_id"] for row in rows]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("traces.pb", b"\x00\x01\x02 nonsense", "the file is neither JSON nor protobuf with spans"),
        ("traces.json", b'{"resourceSpans": [', "invalid JSON"),
        ("traces.json", b"", "has no rows"),
        ("traces.json", b'{"a": 1}', "unknown form: an object with 'a'"),
    ],
)
def test_files_without_any_trace(name: str, content: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=problem):
        read_traces(tmp_path / name)


def test_only_protobuf_needs_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    record(recorder)
    (tmp_path / "a.json").write_bytes(FILES["traces.json"](recorder.spans))
    (tmp_path / "a.pb").write_bytes(FILES["request.pb"](recorder.spans))
    for name in ("google.protobuf.json_format", "opentelemetry.proto.collector.trace.v1.trace_service_pb2"):
        monkeypatch.setitem(sys.modules, name, None)
    assert len(read_traces(tmp_path / "a.json")[1]) == 1
    with pytest.raises(MissingDependencyError, match=r"pip install 'rag-assay\[traces\]'"):
        read_traces(tmp_path / "a.pb")


@pytest.mark.parametrize("kind", ["chain", "chat"])
def test_a_conversation_before_the_question_is_kept(kind: str, tmp_path: Path) -> None:
    said = [("system", "Be brief."), ("user", "Is there a shop?"), ("assistant", "In Dublin."), ("user", QUESTION)]
    recorder = Recorder()
    with recorder.tracer.start_as_current_span("ask") as span:
        if kind == "chain":
            messages = [{"role": role, "content": text} for role, text in said]
            span.set_attributes({"input.value": json.dumps({"messages": messages}), "output.value": ANSWER})
        else:
            parts = [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in said]
            answered = [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}]
            span.set_attribute("gen_ai.input.messages", json.dumps(parts))
            span.set_attribute("gen_ai.output.messages", json.dumps(answered))
    _, [row] = read_traces(write_json_lines(tmp_path / "a.jsonl", [otlp_json(recorder.spans)]))
    assert (row["user_input"], row["response"]) == (QUESTION, ANSWER)
    assert row["earlier_turns"] == "User: Is there a shop?\nAssistant: In Dublin."
    assert row["earlier_answers"] == ["In Dublin."]
