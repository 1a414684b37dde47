"""An embedder that keeps every vector in a SQLite file, so that no text is embedded twice on this machine.

Embedding is most of what an evaluation by the builtin judge costs. A vector's key is the digest of everything that
determines it; a row is checked when it is read, and a damaged one is computed anew. A store that can not be used (a
full disk, a read-only folder, a damaged file) costs time, never a result.
"""

import hashlib
import logging
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tasks.embed.protocol import Embedder, EmbedderIdentity

VERSION = 1
"""Raised whenever an embedder of the same identity would give other vectors."""

_PATIENCE_SECONDS = 30.0
_BATCH = 512
_TABLE = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL, checksum INTEGER NOT NULL)"
_logger = logging.getLogger(__name__)


class StoredEmbedder:
    """Looks vectors up before it embeds. May be used from several threads and processes.

    Args:
        embedder: embeds what is not in the store.
        path: the SQLite file; made when the first vector is kept.
    """

    def __init__(self, embedder: Embedder, path: Path) -> None:
        self._embedder = embedder
        self._path = path

    @property
    def identity(self) -> EmbedderIdentity:
        """Which model."""
        return self._embedder.identity

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (len(texts), dimensions), in the order of the texts."""
        keys = {text: self._key(text) for text in dict.fromkeys(texts)}
        found = self._find(list(keys.values()))
        missing = [text for text, key in keys.items() if key not in found]
        if missing:
            vectors = self._embedder.embed(missing)
            new = {keys[text]: vector for text, vector in zip(missing, vectors, strict=True)}
            self._keep(new)
            found |= new
        if not texts:
            return np.empty((0, self.identity.dimensions), np.float32)
        return np.stack([found[keys[text]] for text in texts])

    def _key(self, text: str) -> bytes:
        parts = (str(VERSION), *(str(getattr(self.identity, name)) for name in self.identity.__slots__), text)
        return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).digest()

    def _find(self, keys: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        found: dict[bytes, NDArray[np.float32]] = {}
        try:
            with self._open() as store:
                for start in range(0, len(keys), _BATCH):
                    batch = keys[start : start + _BATCH]
                    marks = ",".join("?" * len(batch))
                    query = f"SELECT key, vector, checksum FROM vectors WHERE key IN ({marks})"  # noqa: S608 only marks
                    for key, content, checksum in store.execute(query, batch):
                        if self._is_whole(content, checksum):
                            found[key] = np.frombuffer(content, np.float32)
        except (sqlite3.Error, OSError) as error:
            self._complain(error)
        return found

    def _keep(self, vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
        rows = [(key, content := vector.tobytes(), zlib.crc32(content)) for key, vector in vectors.items()]
        try:
            with self._open() as store, store:
                store.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
        except (sqlite3.Error, OSError) as error:
            self._complain(error)

    def _is_whole(self, content: bytes, checksum: int) -> bool:
        return len(content) == 4 * self.identity.dimensions and zlib.crc32(content) == checksum

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self._path, timeout=_PATIENCE_SECONDS)) as store:
            store.execute("PRAGMA journal_mode = WAL")
            store.execute("PRAGMA synchronous = NORMAL")
            store.execute(_TABLE)
            yield store

    def _complain(self, error: Exception) -> None:
        _logger.warning(
            "the store of vectors %s can not be used (%s): texts are embedded anew. If it is damaged, delete it.",
            self._path,
            error,
        )
