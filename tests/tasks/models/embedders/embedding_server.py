"""A fake embedding server on a free port: real HTTP, no model."""

import base64
import struct
from collections.abc import Callable
from typing import Any

from aiohttp import web

from tasks.models.clients.event_loop import EventLoopThread


class EmbeddingServer:
    """A server that embeds a text as its number of characters and its number of words.

    Args:
        models: Names of its models.
    """

    def __init__(self, *models: str) -> None:
        self.models = models or ("embedder",)
        self.bodies: list[dict[str, Any]] = []
        self.supports_base64 = True
        self.extra_dimensions = 0
        self.faults = 0
        self.fails: Callable[[dict[str, Any]], bool] = lambda _body: False
        self.window: int | None = None
        self.shape: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = lambda data: data
        self._background = EventLoopThread("embedding-server")
        self._background.run(self._start())

    async def _start(self) -> None:
        app = web.Application()
        app.router.add_get("/v1/models", self._list)
        app.router.add_post("/v1/embeddings", self._embed)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def _list(self, _request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": model, "max_model_len": self.window} for model in self.models]})

    async def _embed(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.bodies.append(body)
        if self.faults:
            self.faults -= 1
            return web.json_response({"error": {"message": "scripted fault"}}, status=503)
        if self.fails(body):
            return web.json_response({"error": {"message": "scripted failure"}}, status=500)
        if "bad" in body["input"]:
            return web.json_response({"error": {"message": "too long"}}, status=400)
        if body.get("encoding_format") and not self.supports_base64:
            return web.json_response({"error": {"message": "encoding_format?"}}, status=400)
        vectors = [[len(text), len(text.split()), *[0.0] * self.extra_dimensions] for text in body["input"]]
        data = [{"index": i, "embedding": _encode(v, body)} for i, v in enumerate(vectors)]
        tokens = sum(len(text.split()) for text in body["input"])
        return web.json_response({"data": self.shape(data[::-1]), "usage": {"prompt_tokens": tokens}})

    def stop(self) -> None:
        self._background.run(self._runner.cleanup())
        self._background.close()


def _encode(vector: list[float], body: dict[str, Any]) -> Any:
    if "encoding_format" not in body:
        return vector
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
