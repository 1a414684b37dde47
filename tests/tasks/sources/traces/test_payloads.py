"""Questions, answers and passages in the inputs and outputs of frameworks and products."""

import json
from typing import Any

import pytest

from tasks.sources.cells.passage_objects import RetrievedPassage
from tasks.sources.traces.passage_lists import are_documents, find_passages
from tasks.sources.traces.payloads import find_answer, find_asked, find_result

HISTORY = [{"type": "human", "content": "Hi!"}, {"type": "ai", "content": "Hello."}]
ASKED = {"role": "user", "content": "Why?"}
CALL = {"type": "tool_use", "id": "t1", "name": "clock", "input": {}}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "08:30"}]}
DOCUMENT = {"page_content": "Rain.", "metadata": {"source": "a.md"}, "type": "Document"}


def serialize(name: str, **fields: Any) -> Any:
    """Return an object as LangChain serializes it."""
    return {"lc": 1, "type": "constructor", "id": ["langchain_core", "x", name], "kwargs": fields}


QUESTIONS: dict[str, Any] = {
    "a key": {"question": "Why?", "k": 3},
    "prompts of a batch": {"prompts": ["Why?"]},
    "a message": ASKED,
    "a serialized message": serialize("HumanMessage", content="Why?"),
    "a class of messages": {"role": "HumanMessage", "content": "Why?"},
    "batches of messages": {"messages": [[serialize("HumanMessage", content="Why?", type="human")]]},
    "messages with their data inside": [{"type": "human", "data": {"content": "Why?", "type": "human"}}],
    "Gemini": {"contents": [{"role": "user", "parts": [{"text": "Why?"}]}]},
    "Bedrock": {"modelId": "m", "messages": [{"role": "user", "content": [{"text": "Why?"}]}]},
    "OpenAI's Responses": {
        "model": "m",
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "Why?"}]}],
    },
    "a call and its result after it": [ASKED, {"role": "assistant", "content": [CALL]}, RESULT],
    "arguments": {"args": [], "kwargs": {"query": "Why?"}},
    "a role beside a question": {"role": "user", "question": "Why?"},
    "an engine of LlamaIndex": {"query_bundle": {"query_str": "Why?", "image_path": None}},
    "a message of LlamaIndex": {"messages": [{"role": "user", "blocks": [{"block_type": "text", "text": "Why?"}]}]},
}


def test_questions() -> None:
    for form, given in QUESTIONS.items():
        for as_text in [False, True]:
            value = json.dumps(given) if as_text else given
            assert find_asked(value).question == "Why?", (as_text, form)


def test_a_history_beside_a_question_comes_before_it() -> None:
    for asked in ["question", "query", "input", "user_input"]:
        for key in ["chat_history", "history", "conversation_history", "message_history", "memory"]:
            for history in (
                HISTORY,
                [["Hi!", "Hello."]],
                [["human", "Hi!"], ["ai", "Hello."]],
                json.dumps(HISTORY),
                [*HISTORY, ASKED],
            ):
                question, earlier = find_asked({key: history, asked: "Why?"})
                assert (question, [said.text for said in earlier]) == ("Why?", ["Hi!", "Hello."]), (key, asked)


@pytest.mark.parametrize(
    "form", [{"messages": [*HISTORY, ASKED]}, {"input": {"chat_history": HISTORY, "question": "Why?"}}]
)
def test_a_conversation_before_a_question_is_found(form: Any) -> None:
    assert [said.text for said in find_asked(form).earlier] == ["Hi!", "Hello."]


@pytest.mark.parametrize(
    "value",
    [
        {"type": "ai", "content": "So."},
        [DOCUMENT],
        {"city": "Paris", "days": 3},
        "null",
        [RESULT],
        {"messages": [{"role": "assistant", "content": "So."}]},
    ],
)
def test_inputs_without_a_question(value: Any) -> None:
    assert find_asked(value).question is None


ANSWERS: dict[str, Any] = {
    "beside a history": {"question": "Why?", "chat_history": [*HISTORY, ASKED], "answer": "So."},
    "beside passages": {"context": [DOCUMENT], "question": "Why?", "answer": "So."},
    "a message": {"type": "ai", "data": {"content": "So.", "type": "ai", "tool_calls": []}},
    "a serialized message": serialize("AIMessage", content="So."),
    "a chunk of a message": {"type": "AIMessageChunk", "content": "So."},
    "a message under a key": {"output": serialize("AIMessageChunk", content="So.", type="AIMessageChunk")},
    "a message of parts": {
        "type": "ai",
        "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "So."}],
    },
    "parts": [{"type": "text", "text": "So."}],
    "a state with all messages": {
        "messages": [*HISTORY, ASKED, {"type": "ai", "content": "So."}],
        "documents": [DOCUMENT],
    },
    "generations": {
        "generations": [[{"text": "So.", "message": serialize("AIMessage", content="So.")}]],
        "llm_output": None,
    },
    "several choices": {"choices": [{"message": {"role": "assistant", "content": text}} for text in ("So.", "Thus.")]},
    "Anthropic": {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "So."}, CALL]},
    "Bedrock": {"output": {"message": {"role": "assistant", "content": [{"text": "So."}]}}, "stopReason": "end_turn"},
    "Gemini": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "Hm.", "thought": True}, {"text": "So."}]}}]
    },
    "OpenAI's Responses": {
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "So."}]},
        ]
    },
    "Haystack": {"llm": {"replies": ["So."], "meta": [{"model": "m"}]}},
    "Haystack's messages": {"llm": {"replies": [{"role": "assistant", "content": [{"text": "So."}], "meta": {}}]}},
    "a step of a graph": {"generate": {"answer": "So."}},
    "after a call": [ASKED, {"role": "assistant", "content": [CALL]}, RESULT, {"role": "assistant", "content": "So."}],
    "a text with a call before it": [
        {"role": "assistant", "content": "I look.", "tool_calls": [{"name": "clock"}]},
        {"role": "tool", "content": "08:30"},
        {"role": "assistant", "content": "So."},
    ],
}


def test_answers() -> None:
    for form, given in ANSWERS.items():
        for as_text in [False, True]:
            value = json.dumps(given) if as_text else given
            assert find_answer(value) == "So.", (as_text, form)


NO_ANSWERS: dict[str, Any] = {
    "a history": {"question": "Why?", "chat_history": HISTORY},
    "messages that end with a question": {"messages": [*HISTORY, ASKED]},
    "a call": {"role": "assistant", "content": [CALL]},
    "a call as Bedrock has it": {
        "output": {"message": {"role": "assistant", "content": [{"toolUse": {"name": "clock"}}]}}
    },
    "a call as Gemini has it": {
        "candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": "f"}}]}}]
    },
    "a call as OpenAI has it": {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "clock"}}]},
    "a call as its Responses have it": {"output": [{"type": "function_call", "name": "clock", "arguments": "{}"}]},
    "a call without a role": {"content": "", "tool_calls": [{"name": "clock", "args": {}}]},
    "a generated call": {"generations": [[{"text": "", "message": serialize("AIMessage", content=[CALL])}]]},
    "a result": RESULT,
    "documents": [DOCUMENT, DOCUMENT],
    "a document": [{"content": "Rain.", "meta": {"file": "a.md"}, "id": "a"}],
    "documents under a key": {"documents": [DOCUMENT]},
    "what a step passes on": {"question": "Why?", "context": "Rain."},
    "null": None,
    "an empty answer": {"answer": None, "seconds": 3},
    "an error": {"error": {"message": "the index is down"}},
    "a response of LlamaIndex that is streamed": {
        "response_gen": "<generator object>",
        "source_nodes": ["<NodeWithScore()>"],
    },
}


def test_outputs_without_an_answer() -> None:
    for form, given in NO_ANSWERS.items():
        for as_text in [False, True]:
            assert find_answer(json.dumps(given) if as_text else given) is None, (as_text, form)


@pytest.mark.parametrize("shown", ["<generator object>", "<generator object ask at 0x7f0c2a1b>", "null", " "])
def test_what_python_shows_of_an_object_is_no_text(shown: str) -> None:
    assert find_answer(shown) is find_asked(shown).question is None


PASSAGES: dict[str, Any] = {
    "LangChain": [DOCUMENT],
    "LangChain.js": [{"pageContent": "Rain.", "metadata": {"source": "a.md"}}],
    "serialized": [serialize("Document", pageContent="Rain.", metadata={"source": "a.md"})],
    "with scores": [[DOCUMENT, 0.5]],
    "LlamaIndex": [{"node": {"id_": "a.md", "text": "Rain.", "metadata": {}, "class_name": "TextNode"}, "score": 0.5}],
    "a node with resources": [{"node": {"id_": "a.md", "text_resource": {"text": "Rain."}}, "score": 0.5}],
    "Haystack": {"retriever": {"documents": [{"id": "a.md", "content": "Rain.", "meta": {"page": 1}, "score": 0.5}]}},
    "a knowledge base of Bedrock": {
        "retrievalResults": [{"content": {"text": "Rain."}, "metadata": {"source": "a.md"}, "score": 0.5}]
    },
}


def test_passages() -> None:
    for form, given in PASSAGES.items():
        value = given["retriever"] if form == "Haystack" else given
        found = find_passages(value)
        assert found is not None, form
        assert [(passage.text, passage.id) for passage in found] == [("Rain.", "a.md")], form
        assert are_documents(value), form


def test_what_is_no_list_of_documents() -> None:
    replies = [{"text": "So.", "id": "g1", "finish_reason": "stop"}]
    for value in (
        ["Rain."],
        [],
        replies,
        HISTORY,
        [{"type": "text", "text": "So."}],
        {"question": "Why?", "docs": [DOCUMENT]},
    ):
        assert not are_documents(value)
    assert find_passages(["Rain."]) == [RetrievedPassage("Rain.")]
    assert find_passages(["<NodeWithScore(node=TextNode(id_=a), score=1.0)>"]) is None
    assert are_documents({"documents": ["Rain."]}, or_texts=True)
    assert not are_documents({"response": "So.", "source_nodes": ["Rain."]}, or_texts=True)


def test_results_of_tools_are_texts() -> None:
    assert find_result({"output": serialize("ToolMessage", content="08:30", tool_call_id="t1")}) == "08:30"
    assert find_result('{"temperature": 5}') == '{"temperature": 5}'
