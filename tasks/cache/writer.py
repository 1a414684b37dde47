"""Write the answers that one call computes to the cache, and hold the leases on them."""

import uuid
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from tasks.cache.answer_cache import AnswerCache
from tasks.cache.write_queue import QueuedValue
from tasks.metering.meter import waiting_for_store


class CacheWriter:
    """A writer of the answers that one call computes. Use it in a `with` block; at its end all answers are written.

    Args:
        replace: If true, replace cached answers.
    """

    def __init__(self, cache: AnswerCache, step: str, *, replace: bool = False) -> None:
        self._cache = cache
        self._step = step
        self._replace = replace
        self._owner = uuid.uuid4().hex
        self._held: set[bytes] = set()

    def __enter__(self) -> Self:
        self._cache.queue.open(self._owner, self._cache.write_queued, self._cache.leases.extend)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with waiting_for_store():
            is_last = self._cache.queue.close(self._owner)
        if self._held or is_last:
            self._cache.leases.release(self._owner)

    def claim(self, keys: Sequence[bytes]) -> set[bytes]:
        """Return the keys of the answers to compute; another process is computing the others."""
        won = self._cache.leases.claim(keys, self._owner)
        self._held |= won
        return won

    def put(self, key: bytes, value: bytes) -> None:
        """Queue the bytes of an answer; wait for the database if it is behind."""
        self._cache.queue.put(QueuedValue(self._step, key, value, self._owner, self._replace))
        self._held.discard(key)
