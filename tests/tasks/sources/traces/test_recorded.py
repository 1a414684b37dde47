"""Traces of Haystack 3.4 and LlamaIndex 0.14, in which an index is built and a question answered.

OpenInference recorded them, and one is by Haystack's own tracer for OpenTelemetry.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tasks.sources.traces.builders import Recorder, otlp_json, read_traces, write_json_lines

RECORDED = Path(__file__).parent / "recorded"
QUESTION, TEXT = "Where is the shop?", "The shop is in Delft."


@pytest.mark.parametrize(
    ("name", "answer", "texts"),
    [
        ("haystack", "In Delft.", [TEXT]),
        ("haystack_own", "In Delft.", [TEXT]),
        ("llama_index", "text text text text", [TEXT, "It opens at nine."]),
    ],
)
def test_a_question_is_a_row_and_an_index_that_is_built_is_none(name: str, answer: str, texts: list[str]) -> None:
    reader, [row] = read_traces(RECORDED / f"{name}.jsonl")
    assert (row["user_input"], row["response"], row["retrieved_contexts"]) == (QUESTION, answer, texts)
    assert reader.bad_rows == []
    [aside] = reader.warnings
    assert "indexing" in aside


GIVEN: Any = {"retriever": {"query": QUESTION}, "prompt_builder": {"question": QUESTION}}
REPLY = (
    "ChatMessage(_role=<ChatRole.ASSISTANT: 'assistant'>, _content=[TextContent(text=\"It's in Delft.\")], _meta={})"
)
DOCUMENT = "Document(id=a, content: 'It's in Delft, and much longer than what is shown...', meta: {})"
PIPELINES: dict[str, tuple[Any, Any, str]] = {
    "replies of a model": ({"data": GIVEN}, {"llm": {"replies": [REPLY], "meta": [{}]}}, "It's in Delft."),
    "texts of a model": ({"data": GIVEN}, {"llm": {"replies": ["In Delft."], "meta": [{}]}}, "In Delft."),
    "outputs of two components": (
        {"data": GIVEN},
        {"retriever": {"documents": [DOCUMENT]}, "llm": {"replies": [REPLY]}},
        "It's in Delft.",
    ),
    "an answer with documents that cannot be read": (
        {"data": {"embedder": {"text": QUESTION}}},
        {"builder": {"answers": [f"GeneratedAnswer(data='In Delft.', query='Where?', documents=[{DOCUMENT}])"]}},
        "In Delft.",
    ),
    "messages": (
        {"data": {"llm": {"messages": [REPLY.replace("ASSISTANT", "USER").replace("assistant", "user")]}}},
        {"llm": {"replies": [REPLY]}},
        "It's in Delft.",
    ),
}


@pytest.mark.parametrize("case", PIPELINES)
def test_inputs_and_outputs_of_components_are_read(case: str, tmp_path: Path) -> None:
    given, made, answer = PIPELINES[case]
    recorder = Recorder()
    with recorder.tracer.start_as_current_span("Pipeline.run") as span:
        span.set_attribute("openinference.span.kind", "CHAIN")
        span.set_attribute("input.value", json.dumps(given))
        span.set_attribute("output.value", json.dumps(made))
    _, [row] = read_traces(write_json_lines(tmp_path / "a.jsonl", [otlp_json(recorder.spans)]))
    asked = "It's in Delft." if case == "messages" else QUESTION
    assert (row["user_input"], row["response"]) == (asked, answer)


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"data": {"writer": {"documents": [DOCUMENT]}}}, {"writer": {"documents_written": 1}}),
        ({"documents": ["<Document(id_=a)>"], "show_progress": False}, ["<TextNode(id_=b)>"]),
    ],
)
def test_building_an_index_is_no_question(given: Any, made: Any, tmp_path: Path) -> None:
    recorder = Recorder()
    with recorder.tracer.start_as_current_span("Pipeline.run") as span:
        span.set_attribute("input.value", json.dumps(given))
        span.set_attribute("output.value", json.dumps(made))
        with recorder.tracer.start_as_current_span("split") as part:
            part.set_attribute("input.value", json.dumps({"text": "Rain."}))
            part.set_attribute("output.value", json.dumps(["Rain."]))
    with recorder.tracer.start_as_current_span("ask") as span:
        span.set_attribute("input.value", "Why?")
        span.set_attribute("output.value", "So.")
    _, rows = read_traces(write_json_lines(tmp_path / "a.jsonl", [otlp_json(recorder.spans)]))
    assert [(row["user_input"], row["response"]) for row in rows] == [("Why?", "So.")]
