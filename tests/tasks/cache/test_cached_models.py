"""No text is embedded or searched for entities twice, and a faulty cache never changes a result."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import update

from tasks.cache.answer_cache import AnswerCache, checksum_bytes
from tasks.cache.cache_tables import ANSWERS
from tasks.cache.cached_models import CachedEmbedder, CachedRecognizer
from tasks.models.embedders.protocol import EmbedderIdentity
from tasks.models.recognizers.protocol import Entity, RecognizerIdentity
from tasks.runtime.cpu_time import add_cpu
from tasks.runtime.usage import ModelWork, StageUsage, work_of


class CountingEmbedder:
    """An embedder of few dimensions that records its texts."""

    def __init__(self, revision: str = "1", dimensions: int = 2) -> None:
        self.identity = EmbedderIdentity("test", "counting", revision, dimensions)
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        rows = [[len(text), *[1] * (self.identity.dimensions - 1)] for text in texts]
        return np.array(rows, np.float32).reshape(-1, self.identity.dimensions)


class CountingRecognizer:
    """A recognizer of words in capitals that records its texts."""

    def __init__(self, revision: str = "1") -> None:
        self.identity = RecognizerIdentity("test", "capitals", revision)
        self.asked: list[str] = []

    def entities(self, texts: Sequence[str]) -> list[list[Entity]]:
        self.asked += texts
        return [[Entity(word, "CAPITALS") for word in text.split() if word.isupper()] for text in texts]


def test_vectors_come_in_the_order_of_the_texts_and_are_embedded_once(cache: AnswerCache) -> None:
    inner = CountingEmbedder()
    stored = CachedEmbedder(inner, cache)
    assert stored.embed(["bb", "a", "bb"])[:, 0].tolist() == [2, 1, 2]
    found = stored.embed(["a", "ccc"])
    assert found.tolist() == [[1, 1], [3, 1]]
    assert found.dtype == np.dtype(np.float32)
    assert inner.asked == ["bb", "a", "ccc"]


def test_thousands_of_texts(cache: AnswerCache) -> None:
    texts = ["x" * number for number in range(2500)]
    inner = CountingEmbedder()
    for _ in range(2):
        assert CachedEmbedder(inner, cache).embed(texts)[:, 0].tolist() == list(range(2500))
    assert len(inner.asked) == 2500


@pytest.mark.parametrize(("revision", "dimensions"), [("2", 2), ("1", 3)])
def test_another_model_finds_nothing(cache: AnswerCache, revision: str, dimensions: int) -> None:
    CachedEmbedder(CountingEmbedder(), cache).embed(["a"])
    other = CountingEmbedder(revision, dimensions)
    CachedEmbedder(other, cache).embed(["a"])
    assert other.asked == ["a"]


def test_no_text_gives_no_vector(cache: AnswerCache) -> None:
    assert CachedEmbedder(CountingEmbedder(), cache).embed([]).shape == (0, 2)


def test_a_vector_of_another_length_is_damaged(cache: AnswerCache) -> None:
    CachedEmbedder(CountingEmbedder(), cache).embed(["a"])
    row = cache.database.read(lambda connection: connection.execute(ANSWERS.select()).one())
    short = update(ANSWERS).values(value=row.value[:4], checksum=checksum_bytes(row.key, row.value[:4]))
    cache.database.write(lambda connection: connection.execute(short))
    for asked in (["a"], []):
        inner = CountingEmbedder()
        assert CachedEmbedder(inner, cache).embed(["a"]).tolist() == [[1, 1]]
        assert inner.asked == asked


@pytest.mark.parametrize(
    "content", [b"", b"not a database at all, but long enough to have a header of one hundred bytes" * 3]
)
def test_a_file_that_is_no_cache_changes_no_vector(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "answers.db"
    path.write_bytes(content)
    assert CachedEmbedder(CountingEmbedder(), AnswerCache(f"sqlite:///{path}")).embed(["a"]).tolist() == [[1, 1]]


def test_entities_are_looked_for_once(cache: AnswerCache) -> None:
    inner = CountingRecognizer()
    stored = CachedRecognizer(inner, cache)
    texts = ["NATO met", "nothing", "NATO met", "EU and NATO and EU"]
    expected = inner.entities(texts)
    assert stored.entities(texts) == expected
    assert stored.entities(texts) == expected
    assert inner.asked == [*texts, "NATO met", "nothing", "EU and NATO and EU"]
    assert stored.entities([]) == []


def test_another_recognizer_finds_nothing(cache: AnswerCache) -> None:
    CachedRecognizer(CountingRecognizer(), cache).entities(["NATO"])
    other = CountingRecognizer("2")
    CachedRecognizer(other, cache).entities(["NATO"])
    assert other.asked == ["NATO"]


def test_what_a_model_reads_is_counted_and_what_is_cached_is_not(cache: AnswerCache) -> None:
    class Busy(CountingRecognizer):
        def entities(self, texts: Sequence[str]) -> list[list[Entity]]:
            add_cpu(2.0)  # of a thread that works for it
            return super().entities(texts)

    first, again = CachedRecognizer(Busy(), cache), CachedRecognizer(Busy(), cache)
    first.entities(["NATO met", "nothing", "NATO met"])
    again.entities(["NATO met", "EU"])
    assert [work_of(model).texts for model in (first, again)] == [2, 1]
    assert 2 <= work_of(first).cpu_seconds < 3
    embedder = CachedEmbedder(CountingEmbedder(), cache)
    embedder.embed(["a", "bb"])
    total = StageUsage(models={"embedder": work_of(embedder)}) + StageUsage(models={"embedder": ModelWork(texts=3)})
    assert total.models["embedder"].texts == 5
    assert work_of(CountingEmbedder()) == ModelWork()
