"""A fake chat server on a free port, with configurable abilities and faults: real HTTP, no model."""

import asyncio
import json
import math
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from aiohttp import web
from aiohttp.typedefs import Handler

from tasks.models.clients.event_loop import EventLoopThread
from tasks.models.judges.openai.model_probe import SYSTEM

FULL = frozenset(
    {"structured_outputs", "response_format", "logprobs", "n", "seed", "system", "switch", "tokenize", "max_tokens"}
    | {"prompt_lists"}
)
"""The abilities of vLLM 0.10."""

BATCHES = FULL | {"batch"}
"""The abilities of vLLM 0.32, which takes several conversations in one request."""

PLAIN = frozenset({"system", "max_tokens"})
"""The abilities of a minimal server."""

_NEEDS = {
    "structured_outputs": {"structured_outputs"},
    "guided_choice": {"guided_choice"},
    "guided_json": {"guided_json"},
    "response_format": {"response_format"},
    "json_object": {"json_object"},
    "grammar": {"grammar"},
    "logprobs": {"logprobs"},
    "top_logprobs": {"logprobs"},
    "n": {"n"},
    "seed": {"seed"},
    "chat_template_kwargs": {"switch"},
    "max_tokens": {"max_tokens"},
    "max_completion_tokens": {"max_completion_tokens"},
}


@dataclass(frozen=True)
class Fault:
    """A fault in place of an answer: a status with a body, silence, or a broken connection."""

    status: int = 500
    body: Any = field(default_factory=lambda: {"error": {"message": "scripted fault"}})
    headers: dict[str, str] = field(default_factory=dict)
    silence: bool = False
    hang_up: bool = False


Say = Callable[[dict[str, Any]], dict[str, Any] | Fault | None]
"""Body -> changes to the default answer (`content`, `finish_reason`, ...), a fault, or None."""


class FakeServer:
    """A fake server, running while its context is entered.

    Args:
        abilities: Abilities of the server.
        refuses: True to reject unknown fields, False to ignore them.
        say: Function that decides the answer to requests that are not probes.
        models: Names of the models.
        window: Context window of the models; None if the server does not report it.
        key: Key that the server requires; None accepts any.
    """

    def __init__(
        self,
        abilities: Iterable[str] = FULL,
        refuses: bool = False,
        *,
        say: Say = lambda _body: None,
        models: Iterable[str] = ("judge-model",),
        window: int | None = None,
        key: str | None = None,
    ) -> None:
        self.abilities = set(abilities)
        self.refuses = refuses
        self.say = say
        self.models = list(models)
        self.window = window
        self.key = key
        self.delay = 0.0
        self.shape: Callable[[dict[str, Any]], dict[str, Any]] = lambda reply: reply
        self.say_of_itself: Say = lambda _body: None
        self.say_of_a_probe: Say = lambda _body: None
        self.card: dict[str, Any] = {}
        self.slots: int | None = None
        self.out_of_order = False
        self.stumbles_over: str | None = None
        self.fails: Callable[[str, dict[str, Any]], int | None] = lambda _path, _body: None
        self.bodies: list[dict[str, Any]] = []
        self.batches: list[list[dict[str, Any]]] = []
        self.shape_batch: Callable[[dict[str, Any]], dict[str, Any]] = lambda reply: reply
        self.tokenized: list[dict[str, Any]] = []
        self.authorizations: set[str | None] = set()
        self.most_in_flight = 0
        self.in_flight = 0
        self.counted = Counter({"prompt_tokens": 5000, "generation_tokens": 70, "prompt_tokens_cached": 0})
        self._background = EventLoopThread("fake-server")
        self._runner: web.AppRunner | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def asked(self) -> list[dict[str, Any]]:
        """The bodies of chat requests, without probes."""
        return [body for body in self.bodies if not _is_probe(body)]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
        self._background.close()

    def start(self) -> None:
        """Start the server, on its previous port if it had one."""
        self._background.run(self._start())

    def stop(self) -> None:
        """Stop the server at once, aborting open requests."""
        if self._runner is not None:
            self._background.run(self._runner.cleanup())
            self._runner = None

    async def _start(self) -> None:
        @web.middleware
        async def fail_first(request: web.Request, handler: Handler) -> web.StreamResponse:
            status = self.fails(request.path, await request.json() if request.body_exists else {})
            if status is None:
                return await handler(request)
            return web.json_response({"error": {"message": "scripted failure"}}, status=status)

        app = web.Application(middlewares=[fail_first])
        app.router.add_get("/v1/models", self._list)
        app.router.add_get("/health", self._version)
        app.router.add_get("/version", self._version)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/props", self._properties)
        app.router.add_post("/tokenize", self._tokenize)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/chat/completions/batch", self._chat_with_several)
        app.router.add_post("/v1/completions", self._complete)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.0, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]

    async def _list(self, request: web.Request) -> web.Response:
        if self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}":
            return web.json_response({"error": {"message": "no such key"}}, status=401)
        window = {} if self.window is None else {"max_model_len": self.window}
        cards = [{"id": name, "object": "model", "owned_by": "vllm", **window, **self.card} for name in self.models]
        return web.json_response({"object": "list", "data": cards})

    async def _version(self, _request: web.Request) -> web.Response:
        return web.json_response({"version": "0.33.0"})

    async def _properties(self, _request: web.Request) -> web.Response:
        """Tell the number of slots as llama.cpp does, if there is one."""
        if self.slots is None:
            return web.json_response({"detail": "Not Found"}, status=404)
        return web.json_response({"total_slots": self.slots})

    async def _metrics(self, _request: web.Request) -> web.Response:
        """Return the counters of two engines in the words of vLLM, if the server has the ability `counters`."""
        if "counters" not in self.abilities:
            return web.json_response({"detail": "Not Found"}, status=404)
        lines = ['vllm:num_requests_running{engine="0",model_name="judge-model"} 3.0']
        for name, value in self.counted.items():
            lines += [f"# HELP vllm:{name}_total Number of tokens.", f"# TYPE vllm:{name}_total counter"]
            for engine, part in (("0", value // 3), ("1", value - value // 3)):
                lines.append(f'vllm:{name}_total{{engine="{engine}",model_name="judge-model"}} {float(part)}')
            lines.append(f'vllm:{name}_created{{engine="0",model_name="judge-model"}} 1.7e+09')
        return web.Response(text="\n".join(lines))

    def _count(self, usage: Mapping[str, int]) -> None:
        self.counted["prompt_tokens"] += usage["prompt_tokens"]
        self.counted["prompt_tokens_cached"] += usage["prompt_tokens"] * 4 // 5
        self.counted["generation_tokens"] += usage["completion_tokens"]

    async def _tokenize(self, request: web.Request) -> web.Response:
        body = await request.json()
        if "tokenize" not in self.abilities:
            return web.json_response({"detail": "Not Found"}, status=404)
        self.tokenized.append(body)
        return web.json_response({"count": sum(len(m["content"].split()) for m in body["messages"])})

    async def _complete(self, request: web.Request) -> web.Response:
        if "prompt_lists" not in self.abilities:
            return web.json_response({"detail": "Not Found"}, status=404)
        prompts = (await request.json())["prompt"]
        return web.json_response({"choices": [{"index": i, "text": "hello"} for i in range(len(prompts))]})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        self.authorizations.add(request.headers.get("Authorization"))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.delay)
            return await self._answer(request, body)
        finally:
            self.in_flight -= 1

    async def _chat_with_several(self, request: web.Request) -> web.StreamResponse:
        """Answer one conversation after the other; one that cannot be answered spoils them all."""
        if "batch" not in self.abilities:
            return web.json_response({"detail": "Not Found"}, status=404)
        body = await request.json()
        conversations = [{**body, "messages": messages} for messages in body["messages"]]
        if not all(map(_is_probe, conversations)):
            self.batches.append(conversations)
        self.in_flight += len(conversations)
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.delay)
            said = [None if _is_probe(each) else self.say(each) for each in conversations]
        finally:
            self.in_flight -= len(conversations)
        replies = []
        for each, words in zip(conversations, said, strict=True):
            if isinstance(words, Fault):
                return await _fail(request, words)
            replies.append(_completion(each, words or {}))
        choices = [{**reply["choices"][0], "index": i} for i, reply in enumerate(replies)]
        usage = {
            name: sum(reply["usage"][name] for reply in replies) for name in ("prompt_tokens", "completion_tokens")
        }
        if "counters" in self.abilities:
            self._count(usage)
        return web.json_response(self.shape_batch({**replies[0], "choices": choices, "usage": usage}))

    async def _answer(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if body.get("response_format", {}).get("type") == "json_object":
            body = {**body, "json_object": body["response_format"]}
            del body["response_format"]
        unknown = [name for name in body if not _NEEDS.get(name, set()) <= self.abilities]
        if (unknown and self.refuses) or (body["messages"][0]["role"] == "system" and "system" not in self.abilities):
            return web.json_response({"error": {"message": f"unknown: {unknown}"}}, status=400)
        if body.get("n", 1) > 1 and not body["temperature"]:
            return web.json_response({"error": {"message": "n must be 1 when using greedy sampling"}}, status=400)
        if self.out_of_order or self.stumbles_over in body:
            return web.json_response({"error": "out of order"}, status=500)
        say = self.say_of_itself if is_model_probe(body) else self.say_of_a_probe if _is_probe(body) else self.say
        said = say(body)
        if isinstance(said, Fault):
            return await _fail(request, said)
        known = {name: value for name, value in body.items() if name not in unknown}
        reply = _completion(known, said or {})
        if "counters" in self.abilities:
            self._count(reply["usage"])
        return web.json_response(self.shape(reply))


async def _fail(request: web.Request, fault: Fault) -> web.StreamResponse:
    if fault.silence:
        await asyncio.sleep(30)
    if fault.hang_up and request.transport is not None:
        request.transport.abort()
    if isinstance(fault.body, bytes):
        return web.Response(status=fault.status, body=fault.body, headers=fault.headers)
    if isinstance(fault.body, str):
        return web.Response(status=fault.status, text=fault.body, headers=fault.headers)
    return web.json_response(fault.body, status=fault.status, headers=fault.headers)


def _is_probe(body: dict[str, Any]) -> bool:
    return bool(body["messages"][-1]["content"].endswith("Reply with the word hello.")) or is_model_probe(body)


def is_model_probe(body: dict[str, Any]) -> bool:
    """Return whether a request serves to tell the model from others."""
    return SYSTEM in body["messages"][0]["content"]


def _completion(body: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    content = said.get("content", _content(body))
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": content} | said.get("message", {}),
        "finish_reason": said.get("finish_reason", "stop"),
        "logprobs": {"content": said.get("steps", [step(content, {content: 1.0})])} if body.get("logprobs") else None,
    }
    return {
        "object": "chat.completion",
        "choices": said.get("choices", [choice] * body.get("n", 1)),
        "usage": said.get("usage", {"prompt_tokens": 100, "completion_tokens": 1, "prompt_tokens_details": None}),
    }


def _content(body: dict[str, Any]) -> str:
    constraint = body.get("structured_outputs") or {}
    labels = constraint.get("choice") or body.get("guided_choice")
    if labels:
        return str(labels[0])
    if "grammar" in body:
        return str(json.loads(body["grammar"].removeprefix("root ::= ").split(" | ")[0]))
    schema = constraint.get("json") or body.get("guided_json") or body.get("json_object", {}).get("schema")
    if "response_format" in body:
        schema = body["response_format"]["json_schema"]["schema"]
    return "hello" if schema is None else json.dumps(_value(schema))


def _value(schema: dict[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "object":
        return {name: _value(member) for name, member in schema["properties"].items()}
    if schema["type"] == "array":
        return [_value(schema["items"])] * schema.get("minItems", 2)
    return {"string": "It rains.", "integer": 1, "number": 0.5, "boolean": False}[schema["type"]]


def step(text: str, top: dict[str, float]) -> dict[str, Any]:
    """Return a token with its log-probabilities in the format of the chat API."""
    ranked = [{"token": token, "logprob": math.log(p) if p else -9999.0} for token, p in top.items()]
    return {"token": text, "logprob": math.log(top[text]) if text in top else -9999.0, "top_logprobs": ranked}


def free_port() -> int:
    """Return an unused port."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
