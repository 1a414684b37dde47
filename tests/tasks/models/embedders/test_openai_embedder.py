"""Tests of embeddings from a server: order, batches, encodings, faults."""

import math
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from metric_core.errors import EmbedderError
from tasks.cache.answer_cache import AnswerCache
from tasks.models.embedders.openai_embedder import OpenAIEmbedder
from tasks.options.embedding_server_options import ServerEmbedderOptions
from tests.tasks.models.embedders.embedding_server import EmbeddingServer
from tests.tasks.models.judges.openai.fake_server import FakeServer
from tests.tasks.models.judges.openai.test_served_model import memory_of


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingServer]:
    monkeypatch.setattr("tasks.models.clients.backoff.FIRST", 0.01)
    running = EmbeddingServer()
    yield running
    running.stop()


@pytest.fixture
def embedder(server: EmbeddingServer) -> Iterator[OpenAIEmbedder]:
    opened = OpenAIEmbedder(ServerEmbedderOptions(urls=(server.url,), batch=3, revision="r1"))
    server.bodies.clear()
    yield opened
    opened.close()


def test_vectors_come_in_the_order_of_the_texts(server: EmbeddingServer, embedder: OpenAIEmbedder) -> None:
    texts = ["a", "b c", "", "a", "d e f", "long text", "x", "a"]
    vectors = embedder.embed(texts)
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[max(1, len(text)), len(text.split())] for text in texts]
    assert sorted(len(body["input"]) for body in server.bodies) == [3, 3]
    assert sorted(text for body in server.bodies for text in body["input"]) == sorted({*texts, " "} - {""})


def test_no_texts(embedder: OpenAIEmbedder) -> None:
    assert embedder.embed([]).shape == (0, 2)


def test_identity(embedder: OpenAIEmbedder) -> None:
    identity = embedder.identity
    assert (identity.backend, identity.model, identity.revision, identity.dimensions) == (
        *("server", "embedder"),
        *("r1, windows of 512 tokens", 2),
    )


def test_requests_and_tokens_are_counted(server: EmbeddingServer, embedder: OpenAIEmbedder) -> None:
    assert (embedder.usage.requests, embedder.usage.prompt_tokens) == (0, 0)
    server.faults = 1
    embedder.embed(["a b", "c", "d e f", "g"])
    embedder.embed(["h i"])
    assert (embedder.usage.requests, embedder.usage.prompt_tokens) == (len(server.bodies), 9)
    assert len(server.bodies) == 4
    assert embedder.usage.seconds > 0


def test_a_server_with_several_models_wants_one_to_be_named() -> None:
    server = EmbeddingServer("small", "large")
    with pytest.raises(EmbedderError, match="serves 2 models; name one of them: small, large"):
        OpenAIEmbedder(ServerEmbedderOptions(urls=(server.url,)))
    with pytest.raises(EmbedderError, match="does not serve the model 'tiny', but: small, large"):
        OpenAIEmbedder(ServerEmbedderOptions(urls=(server.url,), model="tiny"))
    embedder = OpenAIEmbedder(ServerEmbedderOptions(urls=(server.url,), model="large"))
    assert embedder.identity.model == "large"
    embedder.close()
    server.stop()


def test_a_server_that_only_judges() -> None:
    with FakeServer() as judge, pytest.raises(EmbedderError, match="answers 404: it knows no such address or model"):
        OpenAIEmbedder(ServerEmbedderOptions(urls=(judge.url,)))


def test_a_server_without_base64(server: EmbeddingServer) -> None:
    server.supports_base64 = False
    embedder = OpenAIEmbedder(ServerEmbedderOptions(urls=(server.url,)))
    assert embedder.embed(["a b"]).tolist() == [[3.0, 2.0]]
    embedder.close()


def test_transient_faults_are_retried(server: EmbeddingServer, embedder: OpenAIEmbedder) -> None:
    server.faults = 2
    assert embedder.embed(["a", "b"]).shape == (2, 2)


def test_a_rejected_text_is_an_error_that_describes_it(embedder: OpenAIEmbedder) -> None:
    with pytest.raises(EmbedderError, match=r"an error \(400\) for 1 texts, the longest of 3 characters: too long"):
        embedder.embed(["bad"])


def test_vectors_of_another_length(server: EmbeddingServer, embedder: OpenAIEmbedder) -> None:
    server.extra_dimensions = 1
    with pytest.raises(EmbedderError, match="vectors of length 3, previously of length 2"):
        embedder.embed(["a"])


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (lambda data: data[1:], "was sent 2 texts and returned 1 vectors"),
        (lambda data: [{**item, "index": 0} for item in data], "or not one per text"),
        (
            lambda data: [{**item, "embedding": [math.nan, 1.0]} for item in data],
            "a vector with numbers that are not finite",
        ),
        (lambda data: [{**item, "embedding": [[1.0, 2.0]] * 3} for item in data], "or not one per text"),
        (lambda data: [{**item, "embedding": "abc"} for item in data], "cannot be read"),
        (lambda data: [{**item, "embedding": []} for item in data], "or not one per text"),
        (lambda _data: None, "cannot be read"),
    ],
)
def test_vectors_that_are_not_one_per_text(
    server: EmbeddingServer, embedder: OpenAIEmbedder, shape: Any, message: str
) -> None:
    server.shape = shape
    with pytest.raises(EmbedderError, match=message):
        embedder.embed(["a", "b"])


def test_a_lost_server(server: EmbeddingServer, embedder: OpenAIEmbedder) -> None:
    server.faults = 10_000
    with pytest.raises(EmbedderError, match="the embedding server is lost"):
        embedder.embed(["a"])


def test_no_server() -> None:
    with pytest.raises(EmbedderError, match="cannot be reached"):
        OpenAIEmbedder(ServerEmbedderOptions(urls=("http://127.0.0.1:9",), unavailable_timeout=0))


def test_a_text_that_the_model_may_not_read_at_once_is_sent_in_windows(server: EmbeddingServer) -> None:
    server.window = 24
    embedder = OpenAIEmbedder(ServerEmbedderOptions(urls=(server.url,)))
    server.bodies.clear()
    long = "alpha beta gamma " * 6
    vectors = embedder.embed([long, "short", long + "omega"])
    sent = [text for body in server.bodies for text in body["input"]]
    assert max(len(text) for text in sent) <= (24 - 8) * 3
    assert " ".join(sent).count("omega") == 1
    assert [covered.windows for covered in embedder.coverage([long, "short"])] == [3, 1]
    assert vectors[1].tolist() == [5, 1]
    assert not np.allclose(vectors[0], vectors[2], atol=1e-6)
    assert embedder.identity.revision == "not given, windows of 24 tokens"
    embedder.close()


def test_the_window_of_the_options_precedes_that_of_the_server(server: EmbeddingServer) -> None:
    server.window = 24
    embedder = OpenAIEmbedder(ServerEmbedderOptions(urls=(server.url,), context_window=8192))
    assert embedder.coverage(["alpha " * 100])[0].windows == 1
    embedder.close()


@pytest.mark.parametrize("is_known", [False, True])
def test_an_error_of_a_probe_is_not_learnt(server: EmbeddingServer, tmp_path: Path, is_known: bool) -> None:
    cache = AnswerCache(f"sqlite:///{tmp_path / 'answers.db'}")

    def open_one() -> OpenAIEmbedder:
        return OpenAIEmbedder(ServerEmbedderOptions(urls=(server.url,), max_retries=0), memory_of(cache))

    before = open_one().recognized.token if is_known else None
    server.fails = lambda body: "encoding_format" in body
    encoded = open_one()
    assert encoded.embed(["a b"]).tolist() == [[3, 2]]
    (warning,) = encoded.warnings
    assert "the embedding server could not be probed for base64 (500: scripted failure)" in warning
    numbers = count()
    server.fails = lambda _body: next(numbers) in (1, 2)  # the question about the model, and once more
    mute = open_one()
    server.fails = lambda _body: False
    assert "replies that cannot be read" in mute.warnings[0]
    assert mute.recognized.token not in {encoded.recognized.token, before}
    after = open_one()
    assert after.warnings == ()
    assert after.recognized.token == encoded.recognized.token
    assert len(memory_of(cache).recall("embedder", "embedder")) == 1
