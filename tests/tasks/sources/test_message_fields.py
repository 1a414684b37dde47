"""Fields of messages beside the text: passages, calls and results of tools, files, and those that are not read."""

from pathlib import Path
from typing import Any

import pytest

from tests.tasks.sources.test_conversations import TURNS, read


@pytest.mark.parametrize(
    "name",
    ["retrieval_context", "retrievalContext", "source_documents", "passages", "docs", "chunks", "context"],
)
@pytest.mark.parametrize("passages", [["It is."], [{"page_content": "It is.", "metadata": {}}], '["It is."]'])
def test_passages_of_a_turn_have_several_names(name: str, passages: Any, tmp_path: Path) -> None:
    reader, (row,) = read(tmp_path, {"messages": [TURNS[0], {**TURNS[1], name: passages}]})
    assert (row["retrieved_contexts"], reader.warnings) == (["It is."], [])


@pytest.mark.parametrize(
    ("name", "value"),
    [("sources", ["a.md"]), ("citations", [{"url": "a"}]), ("search_results", {"hits": 1}), ("context", "It is.")],
)
def test_fields_of_messages_that_are_not_read_are_named(name: str, value: Any, tmp_path: Path) -> None:
    said = {**TURNS[1], name: value, "name": "bot", "feedback": ["good"]}
    reader, rows = read(tmp_path, {"messages": [TURNS[0], said, TURNS[0], said]})
    assert [row.get("retrieved_contexts") for row in rows] == [None, None]
    assert reader.warnings == [f"the field {name!r} of 2 messages is not read"]


RESULTS_BESIDE: dict[str, list[dict[str, Any]]] = {
    "one call, one result": [
        {"role": "assistant", "content": "Wait.", "tool_call": {"name": "f", "args": {"id": "7"}}, "tool_result": None},
        {"role": "tool", "content": "", "tool_call": None, "tool_result": {"open": True}},
    ],
    "results in the message that called": [
        {"role": "assistant", "content": "Wait.", "tool_calls": [{"name": "f"}], "tool_results": [{"open": True}]}
    ],
    "DeepEval": [
        {
            "role": "assistant",
            "content": "Wait.",
            "tools_called": [{"name": "f", "input_parameters": {"id": "7"}, "output": {"open": True}}],
        }
    ],
    "DeepEval's JSON": [
        {
            "role": "assistant",
            "content": "Wait.",
            "toolsCalled": [{"name": "f", "inputParameters": {"id": "7"}, "output": {"open": True}}],
        }
    ],
    "Vercel": [
        {
            "role": "assistant",
            "parts": [
                {"type": "step-start"},
                {"type": "tool-f", "state": "output-available", "input": {"id": "7"}, "output": {"open": True}},
                {"type": "source-url", "sourceId": "a", "url": "https://example.org/a"},
            ],
        }
    ],
    "Vercel, before": [
        {
            "role": "assistant",
            "parts": [
                {"type": "tool-invocation", "toolInvocation": {"toolName": "f", "args": {}, "result": {"open": True}}}
            ],
        }
    ],
    "Haystack": [
        {"role": "assistant", "content": [{"tool_call": {"tool_name": "f", "arguments": {"id": "7"}, "id": "t1"}}]},
        {
            "role": "tool",
            "content": [
                {"tool_call_result": {"result": {"open": True}, "origin": {"tool_name": "f", "arguments": {}}}}
            ],
        },
    ],
    "without content": [
        {"role": "assistant", "content": None, "toolCalls": [{"toolName": "f", "args": {}}]},
        {"role": "tool", "tool_output": {"open": True}},
    ],
}


@pytest.mark.parametrize("case", RESULTS_BESIDE)
def test_calls_and_results_beside_the_content(case: str, tmp_path: Path) -> None:
    reader, (row,) = read(tmp_path, {"messages": [TURNS[0], *RESULTS_BESIDE[case], TURNS[1]]})
    assert (row["response"], row["tool_results"]) == ("So.", ['{"open": true}'])
    assert reader.warnings == []


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ({"type": "uri", "modality": "image", "uri": "https://example.org/a"}, "image"),
        ({"type": "blob", "mime_type": "audio/wav", "content": "UklGRg=="}, "audio"),
        ({"type": "file", "mime_type": "application/pdf", "file_id": "f1"}, "pdf"),
        ({"inlineData": {"mimeType": "image/png", "data": "iVBO"}}, "image"),
        ({"image": {"format": "png", "source": {"bytes": "iVBO"}}}, "image"),
        ({"type": "input_image", "image_url": "https://example.org/a"}, "image"),
    ],
)
def test_files_in_messages_are_named_by_what_they_are(part: Any, shown: str, tmp_path: Path) -> None:
    asked = {"role": "user", "content": [{"type": "text", "text": "Why?"}, part]}
    _, (row,) = read(tmp_path, {"messages": [asked, TURNS[1]]})
    assert row["user_input"] == f"Why?\n[{shown}]"
