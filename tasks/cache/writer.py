"""Write answers to the cache while others are still being computed, and send the heartbeats of their owner.

A background thread writes every twentieth of a second: a process that is killed loses no more than that.
"""

import time
import uuid
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Self

from tasks.cache.answer_cache import AnswerCache

FLUSH_SECONDS = 0.05
"""Seconds for which an answer waits to be written together with others."""

BATCH = 32
"""Number of answers that are written without waiting for more."""

HEARTBEAT_SECONDS = 2.5
_MAX_BATCH = 2048


class CacheWriter:
    """A writer of the answers that one call computes. Use it in a `with` block; at its end all answers are written.

    Args:
        cache: Cache to write to.
        step: Kind of the answers.
        replace: If true, replace cached answers.
    """

    def __init__(self, cache: AnswerCache, step: str, *, replace: bool = False) -> None:
        self._cache = cache
        self._step = step
        self._replace = replace
        self._owner = uuid.uuid4().hex
        self._queue: SimpleQueue[tuple[bytes, bytes] | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name="answers", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._queue.put(None)
        self._thread.join()

    def claim(self, keys: Sequence[bytes]) -> set[bytes]:
        """Return the keys of the answers to compute; another process is computing the others."""
        return self._cache.leases.claim(keys, self._owner)

    def put(self, key: bytes, value: bytes) -> None:
        """Queue the bytes of an answer and return at once."""
        self._queue.put((key, value))

    def _work(self) -> None:
        last_heartbeat = time.monotonic()
        is_open = True
        while is_open:
            values, is_open = self._next_batch()
            self._cache.add(self._step, values, self._owner, replace=self._replace)
            if time.monotonic() - last_heartbeat > HEARTBEAT_SECONDS:
                self._cache.leases.extend(self._owner)
                last_heartbeat = time.monotonic()
        self._cache.leases.release(self._owner)

    def _next_batch(self) -> tuple[dict[bytes, bytes], bool]:
        """Return the answers queued within a short time, and whether more may come."""
        values: dict[bytes, bytes] = {}
        deadline = time.monotonic() + FLUSH_SECONDS
        while len(values) < _MAX_BATCH:
            timeout = max(0.0, deadline - time.monotonic()) if len(values) < BATCH else 0.0
            try:
                item = self._queue.get(timeout=timeout) if timeout else self._queue.get_nowait()
            except Empty:
                break
            if item is None:
                return values, False
            key, value = item
            values[key] = value
        return values, True
