"""Rows of calls of OpenAI's client, which the instrumentor of OpenInference recorded."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from openinference.instrumentation.openai import OpenAIInstrumentor

from metric_core.errors import SourceError
from tests.tasks.sources.traces.builders import Recorder, otlp, read_traces

QUESTION, ANSWER = "When does it open?", "At nine."
ASKED: Any = {"role": "user", "content": QUESTION}
SAID: list[Any] = [{"role": "user", "content": "Hi!"}, {"role": "assistant", "content": "Hello."}, ASKED]
PICTURE: Any = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
CALL: Any = {"id": "t1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}
CALLED: Any = {"type": "function_call", "id": "f1", "call_id": "t1", "name": "clock", "arguments": "{}"}
RESULT: list[Any] = [
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "t1", "content": "08:30"},
]


class Client:
    """A client whose calls are recorded, and answered by the next of these replies."""

    def __init__(self) -> None:
        self.recorder = Recorder()
        self.replies: list[httpx.Response] = []
        # Of a type that depends on the version of the client.
        http: Any = httpx.Client(transport=httpx.MockTransport(lambda _: self.replies.pop(0)))
        self.api = openai.OpenAI(api_key="none", base_url="http://localhost/v1", http_client=http, max_retries=0)

    def chat(self, messages: list[Any], reply: httpx.Response, **options: Any) -> Any:
        self.replies.append(reply)
        return self.api.chat.completions.create(model="m", messages=messages, **options)

    def respond(self, asked: Any, *output: Any) -> None:
        fields = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "status": "completed"}
        reply = {"id": "r1", "object": "response", "created_at": 1, "model": "m", "output": output, **fields}
        self.replies.append(httpx.Response(200, json=reply))
        self.api.responses.create(model="m", input=asked)


@pytest.fixture
def client() -> Iterator[Client]:
    client, instrumentor = Client(), OpenAIInstrumentor()
    instrumentor.instrument(tracer_provider=client.recorder.provider)
    yield client
    instrumentor.uninstrument()
    client.api.close()


def completion(text: str | None = ANSWER, *calls: Any) -> httpx.Response:
    message = {"role": "assistant", "content": text, "tool_calls": calls or None}
    choices = [{"index": 0, "finish_reason": "stop", "message": message}]
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    fields = {"object": "chat.completion", "created": 1, "model": "m", "choices": choices, "usage": usage}
    return httpx.Response(200, json={"id": "c1", **fields})


def stream(*texts: str) -> httpx.Response:
    fields = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices = [{"index": 0, "delta": {"role": "assistant", "content": text}} for text in texts]
    chunks = [f"data: {json.dumps({**fields, 'choices': [choice]})}\n\n" for choice in choices]
    return httpx.Response(
        200, text="".join([*chunks, "data: [DONE]\n\n"]), headers={"content-type": "text/event-stream"}
    )


def message(text: str) -> Any:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": content}


def ask_agent(client: Client) -> None:
    with client.recorder.tracer.start_as_current_span("agent") as span:
        span.set_attributes({"openinference.span.kind": "AGENT", "input.value": QUESTION})
        client.chat([ASKED], completion(None, CALL))
        client.chat([ASKED, *RESULT], completion())


ANSWERED: dict[str, tuple[Callable[[Client], Any], str, str | None]] = {
    "a question": (lambda it: it.chat([ASKED], completion()), QUESTION, None),
    "a conversation": (lambda it: it.chat(SAID, completion()), QUESTION, "User: Hi!\nAssistant: Hello."),
    "a picture": (
        lambda it: it.chat([{"role": "user", "content": [{"type": "text", "text": QUESTION}, PICTURE]}], completion()),
        f"{QUESTION}\n[image]",
        None,
    ),
    "a stream": (lambda it: list(it.chat([ASKED], stream("At ", "nine."), stream=True)), QUESTION, None),
    "a tool": (ask_agent, QUESTION, None),
    "a response": (
        lambda it: it.respond(QUESTION, {"type": "reasoning", "id": "x1", "summary": []}, message(ANSWER)),
        QUESTION,
        None,
    ),
    "a response after a call": (
        lambda it: it.respond(
            [ASKED, CALLED, {"type": "function_call_output", "call_id": "t1", "output": "08:30"}], message(ANSWER)
        ),
        QUESTION,
        None,
    ),
}
UNANSWERED: dict[str, tuple[Callable[[Client], Any], str]] = {
    "a call": (lambda it: it.chat([ASKED], completion(None, CALL)), "no answer"),
    "a call as a response": (lambda it: it.respond([ASKED], CALLED), "no answer"),
    "an error": (lambda it: it.chat([ASKED], httpx.Response(500)), "no answer: it ended with an error"),
}


def write(client: Client, folder: Path) -> Path:
    (folder / "traces.pb").write_bytes(otlp(client.recorder.spans).SerializeToString())
    return folder / "traces.pb"


@pytest.mark.parametrize("case", ANSWERED)
def test_calls_are_rows(case: str, client: Client, tmp_path: Path) -> None:
    ask, question, earlier = ANSWERED[case]
    ask(client)
    reader, [row] = read_traces(write(client, tmp_path))
    assert (row["user_input"], row["response"], row["earlier_turns"]) == (question, ANSWER, earlier)
    assert reader.warnings == []


@pytest.mark.parametrize("case", UNANSWERED)
def test_calls_of_tools_and_errors_are_no_answers(case: str, client: Client, tmp_path: Path) -> None:
    ask, problem = UNANSWERED[case]
    if case == "an error":
        with pytest.raises(openai.InternalServerError):
            ask(client)
    else:
        ask(client)
    with pytest.raises(SourceError) as caught:
        read_traces(write(client, tmp_path))
    assert str(caught.value).endswith(problem)
