"""The store of vectors: nothing is embedded twice, and nothing that goes wrong with the file changes a vector."""

import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tasks.embed.protocol import EmbedderIdentity
from tasks.embed.stored import StoredEmbedder


class Counting:
    """An embedder of two dimensions that remembers what it was asked for."""

    def __init__(self, revision: str = "1") -> None:
        self.identity = EmbedderIdentity("test", "counting", revision, 2)
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        return np.array([[len(text), 1] for text in texts], np.float32).reshape(-1, 2)


def test_vectors_come_in_the_order_of_the_texts_and_are_embedded_once(tmp_path: Path) -> None:
    inner = Counting()
    stored = StoredEmbedder(inner, tmp_path / "vectors.db")
    assert stored.embed(["bb", "a", "bb"])[:, 0].tolist() == [2, 1, 2]
    assert stored.embed(["a", "ccc"])[:, 0].tolist() == [1, 3]
    assert inner.asked == ["bb", "a", "ccc"]


def test_another_process_finds_them(tmp_path: Path) -> None:
    StoredEmbedder(Counting(), tmp_path / "vectors.db").embed(["a"])
    later = Counting()
    assert StoredEmbedder(later, tmp_path / "vectors.db").embed(["a"]).tolist() == [[1, 1]]
    assert later.asked == []


def test_another_revision_of_the_model_finds_nothing(tmp_path: Path) -> None:
    StoredEmbedder(Counting(), tmp_path / "vectors.db").embed(["a"])
    other = Counting(revision="2")
    StoredEmbedder(other, tmp_path / "vectors.db").embed(["a"])
    assert other.asked == ["a"]


def test_no_text_gives_no_vector(tmp_path: Path) -> None:
    assert StoredEmbedder(Counting(), tmp_path / "vectors.db").embed([]).shape == (0, 2)


def test_a_damaged_vector_is_computed_anew(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    StoredEmbedder(Counting(), path).embed(["a"])
    with sqlite3.connect(path) as store:
        store.execute("UPDATE vectors SET vector = ?", (np.array([9, 9], np.float32).tobytes(),))
    store.close()
    for asked in (["a"], []):
        inner = Counting()
        assert StoredEmbedder(inner, path).embed(["a"]).tolist() == [[1, 1]]
        assert inner.asked == asked


@pytest.mark.parametrize(
    "content", [b"", b"not a database at all, but long enough to have a header of one hundred bytes" * 3]
)
def test_a_file_that_is_no_store_changes_no_vector(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "vectors.db"
    path.write_bytes(content)
    assert StoredEmbedder(Counting(), path).embed(["a"]).tolist() == [[1, 1]]


def test_a_folder_that_can_not_be_made_changes_no_vector(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    assert StoredEmbedder(Counting(), tmp_path / "file" / "vectors.db").embed(["a"]).tolist() == [[1, 1]]


def test_many_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"

    def embed(number: int) -> list[list[float]]:
        vectors: list[list[float]] = (
            StoredEmbedder(Counting(), path).embed(["x" * (number + k) for k in range(5)]).tolist()
        )
        return vectors

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(embed, range(20)))
    assert results == [[[number + k, 1] for k in range(5)] for number in range(20)]
    later = Counting()
    StoredEmbedder(later, path).embed(["x" * number for number in range(24)])
    assert later.asked == []
