"""No text is embedded or searched for entities twice, and nothing that goes wrong with a store changes a result."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import update

from tasks.cache.answer_cache import AnswerCache, checksum_bytes
from tasks.cache.cache_tables import ANSWERS
from tasks.cache.cached_models import CachedEmbedder, CachedRecognizer
from tasks.embedders.protocol import EmbedderIdentity
from tasks.recognizers.protocol import Entity, RecognizerIdentity


class CountingEmbedder:
    """An embedder of few dimensions that remembers what it was asked for."""

    def __init__(self, revision: str = "1", dimensions: int = 2) -> None:
        self.identity = EmbedderIdentity("test", "counting", revision, dimensions)
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        rows = [[len(text), *[1] * (self.identity.dimensions - 1)] for text in texts]
        return np.array(rows, np.float32).reshape(-1, self.identity.dimensions)


class CountingRecognizer:
    """Finds every word in capitals, and remembers what it was asked for."""

    def __init__(self, revision: str = "1") -> None:
        self.identity = RecognizerIdentity("test", "capitals", revision)
        self.asked: list[str] = []

    def entities(self, texts: Sequence[str]) -> list[list[Entity]]:
        self.asked += texts
        return [[Entity(word, "CAPITALS") for word in text.split() if word.isupper()] for text in texts]


def test_vectors_come_in_the_order_of_the_texts_and_are_embedded_once(store: AnswerCache) -> None:
    inner = CountingEmbedder()
    stored = CachedEmbedder(inner, store)
    assert stored.embed(["bb", "a", "bb"])[:, 0].tolist() == [2, 1, 2]
    found = stored.embed(["a", "ccc"])
    assert found.tolist() == [[1, 1], [3, 1]]
    assert found.dtype == np.dtype(np.float32)
    assert inner.asked == ["bb", "a", "ccc"]


def test_thousands_of_texts(store: AnswerCache) -> None:
    texts = ["x" * number for number in range(2500)]
    inner = CountingEmbedder()
    for _ in range(2):
        assert CachedEmbedder(inner, store).embed(texts)[:, 0].tolist() == list(range(2500))
    assert len(inner.asked) == 2500


@pytest.mark.parametrize(("revision", "dimensions"), [("2", 2), ("1", 3)])
def test_another_model_finds_nothing(store: AnswerCache, revision: str, dimensions: int) -> None:
    CachedEmbedder(CountingEmbedder(), store).embed(["a"])
    other = CountingEmbedder(revision, dimensions)
    CachedEmbedder(other, store).embed(["a"])
    assert other.asked == ["a"]


def test_no_text_gives_no_vector(store: AnswerCache) -> None:
    assert CachedEmbedder(CountingEmbedder(), store).embed([]).shape == (0, 2)


def test_a_vector_of_another_length_is_damaged(store: AnswerCache) -> None:
    CachedEmbedder(CountingEmbedder(), store).embed(["a"])
    row = store.database.read(lambda connection: connection.execute(ANSWERS.select()).one())
    short = update(ANSWERS).values(value=row.value[:4], checksum=checksum_bytes(row.key, row.value[:4]))
    store.database.write(lambda connection: connection.execute(short))
    for asked in (["a"], []):
        inner = CountingEmbedder()
        assert CachedEmbedder(inner, store).embed(["a"]).tolist() == [[1, 1]]
        assert inner.asked == asked


@pytest.mark.parametrize(
    "content", [b"", b"not a database at all, but long enough to have a header of one hundred bytes" * 3]
)
def test_a_file_that_is_no_store_changes_no_vector(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "answers.db"
    path.write_bytes(content)
    assert CachedEmbedder(CountingEmbedder(), AnswerCache(f"sqlite:///{path}")).embed(["a"]).tolist() == [[1, 1]]


def test_entities_are_looked_for_once(store: AnswerCache) -> None:
    inner = CountingRecognizer()
    stored = CachedRecognizer(inner, store)
    texts = ["NATO met", "nothing", "NATO met", "EU and NATO and EU"]
    expected = inner.entities(texts)
    assert stored.entities(texts) == expected
    assert stored.entities(texts) == expected
    assert inner.asked == [*texts, "NATO met", "nothing", "EU and NATO and EU"]
    assert stored.entities([]) == []


def test_another_recogniser_finds_nothing(store: AnswerCache) -> None:
    CachedRecognizer(CountingRecognizer(), store).entities(["NATO"])
    other = CountingRecognizer("2")
    CachedRecognizer(other, store).entities(["NATO"])
    assert other.asked == ["NATO"]
