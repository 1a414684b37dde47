"""Embeddings from a server: order, batches, encodings, faults."""

import base64
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from aiohttp import web

from metric_core.errors import EmbedderError
from tasks.embed.server import ServerEmbedder, ServerEmbedderOptions
from tasks.judge.server.background import Background


class EmbeddingServer:
    """Embeds a text as its number of characters and its number of words."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.knows_base64 = True
        self.fault: web.Response | None = None
        self.extra_dimensions = 0
        self.faults = 0
        self._background = Background("embedding-server")
        self._background.run(self._start())

    async def _start(self) -> None:
        app = web.Application()
        app.router.add_get("/v1/models", self._list)
        app.router.add_post("/v1/embeddings", self._embed)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _list(self, _request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "embedder"}]})

    async def _embed(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.bodies.append(body)
        if self.faults:
            self.faults -= 1
            return web.json_response({"error": {"message": "scripted fault"}}, status=503)
        if "bad" in body["input"]:
            return web.json_response({"error": {"message": "too long"}}, status=400)
        if body.get("encoding_format") and not self.knows_base64:
            return web.json_response({"error": {"message": "encoding_format?"}}, status=400)
        vectors = [[len(text), len(text.split()), *[0.0] * self.extra_dimensions] for text in body["input"]]
        data = [{"index": i, "embedding": _encoded(v, body)} for i, v in enumerate(vectors)]
        return web.json_response({"data": data[::-1]})

    def stop(self) -> None:
        self._background.run(self._runner.cleanup())
        self._background.close()


def _encoded(vector: list[float], body: dict[str, Any]) -> Any:
    if "encoding_format" not in body:
        return vector
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingServer]:
    monkeypatch.setattr("tasks.judge.server.backoff.FIRST", 0.01)
    running = EmbeddingServer()
    yield running
    running.stop()


@pytest.fixture
def embedder(server: EmbeddingServer) -> Iterator[ServerEmbedder]:
    opened = ServerEmbedder(ServerEmbedderOptions(urls=(server.url,), batch=3, revision="r1"))
    server.bodies.clear()
    yield opened
    opened.close()


def test_vectors_come_in_the_order_of_the_texts(server: EmbeddingServer, embedder: ServerEmbedder) -> None:
    texts = ["a", "b c", "", "a", "d e f", "long text", "x", "a"]
    vectors = embedder.embed(texts)
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[max(1, len(text)), len(text.split())] for text in texts]
    assert sorted(len(body["input"]) for body in server.bodies) == [3, 3]
    assert sorted(text for body in server.bodies for text in body["input"]) == sorted({*texts, " "} - {""})


def test_no_texts(embedder: ServerEmbedder) -> None:
    assert embedder.embed([]).shape == (0, 2)


def test_identity(embedder: ServerEmbedder) -> None:
    identity = embedder.identity
    assert (identity.backend, identity.model, identity.revision, identity.dimensions) == ("server", "embedder", "r1", 2)


def test_a_server_that_knows_no_base64(server: EmbeddingServer) -> None:
    server.knows_base64 = False
    embedder = ServerEmbedder(ServerEmbedderOptions(urls=(server.url,)))
    assert embedder.embed(["a b"]).tolist() == [[3.0, 2.0]]
    embedder.close()


def test_passing_faults_are_tried_again(server: EmbeddingServer, embedder: ServerEmbedder) -> None:
    server.faults = 2
    assert embedder.embed(["a", "b"]).shape == (2, 2)


def test_a_refused_text_is_an_error_that_says_which(embedder: ServerEmbedder) -> None:
    with pytest.raises(EmbedderError, match=r"an error \(400\) for 1 texts, the longest of 3 characters: too long"):
        embedder.embed(["bad"])


def test_vectors_of_another_length(server: EmbeddingServer, embedder: ServerEmbedder) -> None:
    server.extra_dimensions = 1
    with pytest.raises(EmbedderError, match="vectors of length 3, after such of length 2"):
        embedder.embed(["a"])


def test_a_lost_server(server: EmbeddingServer, embedder: ServerEmbedder) -> None:
    server.faults = 10_000
    with pytest.raises(EmbedderError, match="the embedding server is lost"):
        embedder.embed(["a"])


def test_no_server() -> None:
    with pytest.raises(EmbedderError, match="can not be reached"):
        ServerEmbedder(ServerEmbedderOptions(urls=("http://127.0.0.1:9",), patience=0))
