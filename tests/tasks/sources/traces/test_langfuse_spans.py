"""Observations of Langfuse without their traces, and those whose type does not say what they are."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tasks.sources.traces.builders import Recorder, otlp_json, read_traces, write_json_lines
from tests.tasks.sources.traces.test_products import (
    ANSWER,
    DOCUMENTS,
    LANGFUSE_OBSERVATIONS,
    LANGFUSE_TRACE,
    PROMPT,
    QUESTION,
    TEXTS,
    check,
    observation,
    snake,
)


def test_observations_of_langfuse_without_a_type_are_known_by_their_fields(tmp_path: Path) -> None:
    records = [{**each, "type": ""} for each in LANGFUSE_OBSERVATIONS if each["type"] != "TOOL"]
    reader, [row] = read_traces(write_json_lines(tmp_path / "a.jsonl", [LANGFUSE_TRACE, *records]))
    assert (row["user_input"], row["response"], row["retrieved_contexts"]) == (QUESTION, ANSWER, TEXTS)
    assert (row["extras"]["model"], row["extras"]["prompt_tokens"]) == ("small-1", 20)
    for record in records:
        del record["type"]
    assert read_traces(write_json_lines(tmp_path / "b.jsonl", [LANGFUSE_TRACE, *records]))[1] == [row]
    assert reader.warnings == []


@pytest.mark.parametrize("found", [TEXTS, {"documents": TEXTS}, TEXTS[:1], {"documents": DOCUMENTS}, DOCUMENTS[:1]])
@pytest.mark.parametrize("level", ["DEFAULT", "ERROR"])
@pytest.mark.parametrize("with_trace", [None, {**LANGFUSE_TRACE, "output": None}])
def test_what_a_span_of_langfuse_retrieves_is_no_answer(
    with_trace: Any, level: str, found: Any, tmp_path: Path
) -> None:
    root = observation(0, "SPAN", name="ask", input=QUESTION, output=None, level=level)
    search = observation(1, "SPAN", name="retrieve", input=QUESTION, output=found, parentObservationId="obs-0")
    model = {**LANGFUSE_OBSERVATIONS[2], "parentObservationId": "obs-0"}
    other = {**LANGFUSE_TRACE, "id": "trace-2", "input": "Why?", "output": "So."}
    records = [root, search, model, other, *([] if with_trace is None else [with_trace])]
    reader, rows = read_traces(write_json_lines(tmp_path / "a.jsonl", records))
    answered = (
        []
        if level == "ERROR"
        else [(QUESTION, ANSWER, TEXTS if len(found) == 2 or isinstance(found, dict) else TEXTS[:1])]
    )
    assert [tuple(row[n] for n in ("user_input", "response", "retrieved_contexts")) for row in rows] == [
        *answered,
        ("Why?", "So.", None),
    ]
    assert reader.bad_row_count == (level == "ERROR")


def test_spans_that_langfuse_sends_by_otlp(tmp_path: Path) -> None:
    recorder = Recorder()
    with recorder.tracer.start_as_current_span("ask") as span:
        span.set_attributes({"langfuse.observation.type": "span", "langfuse.observation.input": QUESTION})
        span.set_attributes(
            {"langfuse.observation.output": json.dumps({"answer": ANSWER}), "langfuse.session.id": "s1"}
        )
        with recorder.tracer.start_as_current_span("search") as search:
            search.set_attributes({"langfuse.observation.type": "retriever", "langfuse.observation.input": QUESTION})
            search.set_attribute("langfuse.observation.output", json.dumps(DOCUMENTS))
        with recorder.tracer.start_as_current_span("chat") as chat:
            chat.set_attributes(
                {"langfuse.observation.type": "generation", "langfuse.observation.input": json.dumps(PROMPT)}
            )
            chat.set_attributes({"langfuse.observation.output": ANSWER, "langfuse.observation.model.name": "small-1"})
    _, [row] = read_traces(write_json_lines(tmp_path / "a.jsonl", [otlp_json(recorder.spans)]))
    assert (row["user_input"], row["response"], row["session_id"]) == (QUESTION, ANSWER, "s1")
    assert (row["retrieved_contexts"], row["extras"]["model"]) == (TEXTS, "small-1")


def test_enriched_observations_of_langfuse_need_no_traces(tmp_path: Path) -> None:
    context = {"session_id": "s1", "user_id": "u1", "trace_name": "ask", "environment": "production"}
    root = observation(0, "CHAIN", input={"question": QUESTION}, output=ANSWER, metadata={"customer": "acme"})
    records = [snake({**LANGFUSE_OBSERVATIONS[0], "parentObservationId": "obs-0"})]
    records += [{**snake({**each, "parentObservationId": "obs-0"}), **context} for each in LANGFUSE_OBSERVATIONS[1:]]
    records.append({**snake(root), **context, "parent_observation_id": "", "start_time": "2026-05-01 10:00:00.000000"})
    _, [row] = read_traces(write_json_lines(tmp_path / "observations_v2.jsonl", records))
    check(row, "trace-1", "s1")
    assert row["extras"]["span_id"] == "obs-0"


def test_earlier_sdks_of_langfuse_record_retrievers_as_spans(tmp_path: Path) -> None:
    records = [LANGFUSE_TRACE, {**LANGFUSE_OBSERVATIONS[0], "type": "SPAN", "name": "VectorStoreRetriever"}]
    reranked = observation(2, "SPAN", name="rerank", input=DOCUMENTS, output=[{**DOCUMENTS[1], "score": 0.9}])
    _, [row] = read_traces(write_json_lines(tmp_path / "a.jsonl", records))
    assert row["retrieved_contexts"] == TEXTS
    _, [row] = read_traces(write_json_lines(tmp_path / "b.jsonl", [*records, reranked]))
    assert (row["retrieved_contexts"], row["retrieved_context_scores"]) == (TEXTS[1:], [0.9])


def test_usage_with_keys_that_are_no_names_is_not_counted(tmp_path: Path) -> None:
    model = {**LANGFUSE_OBSERVATIONS[2], "usageDetails": "{1: 2}"}
    _, [row] = read_traces(write_json_lines(tmp_path / "a.jsonl", [LANGFUSE_TRACE, model]))
    assert row["extras"]["output_tokens"] == 3  # as the trace has it


def encode(value: Any, times: int) -> Any:
    """Return a value as the JSON of its JSON, as exporters that encode at each step write it."""
    return value if not times else encode(json.dumps(value), times - 1)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_json_in_json_is_read_to_its_end(times: int, tmp_path: Path) -> None:
    given, made = encode({"question": encode(QUESTION, 1)}, times), encode({"answer": ANSWER}, times)
    root = observation(0, "CHAIN", name="ask", input=given, output=made)
    found = {"documents": [encode(document, 1) for document in DOCUMENTS]}
    search = observation(1, "RETRIEVER", name="search", input=encode(QUESTION, times), output=encode(found, times))
    tool = observation(2, "TOOL", name="clock", input="{}", output=encode("Nine.", times))
    steps = [{**each, "parentObservationId": "obs-0"} for each in (search, tool)]
    _, [row] = read_traces(write_json_lines(tmp_path / "a.jsonl", [root, *steps]))
    assert (row["user_input"], row["response"], row["retrieved_contexts"]) == (QUESTION, ANSWER, TEXTS)
    assert row["tool_results"] == ["Nine."]


@pytest.mark.parametrize(
    ("made", "answer"),
    [
        (42, "42"),
        (0, "0"),
        (False, "false"),
        ({"answer": 3.5}, "3.5"),
        ({"result": ["Delft", "Gouda"]}, "Delft\nGouda"),
        ('["Delft", "Gouda"]', "Delft\nGouda"),
    ],
)
def test_answers_that_are_numbers_or_lists(made: Any, answer: str, tmp_path: Path) -> None:
    root = observation(0, "CHAIN", name="ask", input=QUESTION, output=made)
    _, [row] = read_traces(write_json_lines(tmp_path / "a.jsonl", [root]))
    assert row["response"] == answer


def test_an_output_without_an_answer_is_described(tmp_path: Path) -> None:
    root = observation(0, "CHAIN", name="ask", input=QUESTION, output={"verdicts": [1, 2]})
    other = {**LANGFUSE_TRACE, "id": "trace-2", "input": "Why?", "output": "So."}
    reader, _ = read_traces(write_json_lines(tmp_path / "a.jsonl", [root, other]))
    assert reader.warnings == ["1 trace left out: no answer: the output is an object with 'verdicts'"]


@pytest.mark.parametrize(
    "made", ["undefined", "[object Object]", None, {"hits": 3}, ["<NodeWithScore(node=TextNode(id_=a))>"]]
)
def test_retrievers_without_readable_passages_are_counted(made: Any, tmp_path: Path) -> None:
    root = observation(0, "CHAIN", name="ask", input=QUESTION, output=ANSWER)
    search = observation(1, "RETRIEVER", name="search", input=QUESTION, output=made, parentObservationId="obs-0")
    failed = {**search, "id": "obs-2", "level": "ERROR"}
    reader, [row] = read_traces(write_json_lines(tmp_path / "a.jsonl", [root, search, failed]))
    assert (row["response"], row["retrieved_contexts"]) == (ANSWER, None)
    assert reader.warnings == ["1 retriever whose output has no passages that can be read: 'search'"]


@pytest.mark.parametrize("part_has_some", [False, True])
def test_a_retriever_in_another_with_passages_is_not_counted(part_has_some: bool, tmp_path: Path) -> None:
    outputs = ["undefined", DOCUMENTS] if part_has_some else [DOCUMENTS, "undefined"]
    root = observation(0, "CHAIN", name="ask", input=QUESTION, output=ANSWER)
    whole = observation(1, "RETRIEVER", name="search", input=QUESTION, output=outputs[0], parentObservationId="obs-0")
    part = observation(2, "RETRIEVER", name="vectors", input=QUESTION, output=outputs[1], parentObservationId="obs-1")
    reader, [row] = read_traces(write_json_lines(tmp_path / "a.jsonl", [root, whole, part]))
    assert (row["retrieved_contexts"], reader.warnings) == (TEXTS, [])


STORES: dict[str, Any] = {
    "Chroma": {"ids": [["a.md", "b.md"]], "documents": [TEXTS], "metadatas": [[{}, {}]], "distances": [[0.1, 0.2]]},
    "Pinecone": {"matches": [{"id": "a.md", "score": 0.9, "metadata": {"text": text}} for text in TEXTS]},
    "Qdrant": {"points": [{"id": "a.md", "version": 1, "score": 0.9, "payload": {"text": text}} for text in TEXTS]},
    "Weaviate": {"objects": [{"uuid": "a.md", "properties": {"content": text}} for text in TEXTS]},
    "Elasticsearch": {"hits": {"hits": [{"_id": "a.md", "_score": 1.5, "_source": {"text": text}} for text in TEXTS]}},
    "Azure": {"value": [{"id": "a.md", "@search.score": 1.5, "content": text} for text in TEXTS]},
}


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("times", [0, 1, 2])
def test_passages_in_the_forms_of_stores_are_read(store: str, times: int, tmp_path: Path) -> None:
    root = observation(0, "CHAIN", name="ask", input=QUESTION, output=ANSWER)
    made = encode(STORES[store], times)
    search = observation(1, "RETRIEVER", name="search", input=QUESTION, output=made, parentObservationId="obs-0")
    reader, [row] = read_traces(write_json_lines(tmp_path / "a.jsonl", [root, search]))
    assert (row["retrieved_contexts"], reader.warnings) == (TEXTS, [])
