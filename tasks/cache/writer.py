"""Keeps answers while others are still being computed, and shows that their owner is alive.

A thread of its own writes what has come every twentieth of a second: a process that is killed loses no more than that.
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
"""How long an answer waits for others to be written with."""

BATCH = 32
"""Answers that are written without waiting for more."""

HEARTBEAT_SECONDS = 2.5
_MOST = 2048


class CacheWriter:
    """Writes the answers that one call computes. To be used in a `with` block, at whose end all are written.

    Args:
        store: where to.
        step: what the answers are.
        replace: replace answers that are there.
    """

    def __init__(self, store: AnswerCache, step: str, *, replace: bool = False) -> None:
        self._store = store
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
        """The keys of the answers to compute; somebody else is at work on the others."""
        return self._store.leases.claim(keys, self._owner)

    def put(self, key: bytes, value: bytes) -> None:
        """Takes the bytes of an answer; returns at once."""
        self._queue.put((key, value))

    def _work(self) -> None:
        alive = time.monotonic()
        open_ = True
        while open_:
            values, open_ = self._gathered()
            self._store.add(self._step, values, self._owner, replace=self._replace)
            if time.monotonic() - alive > HEARTBEAT_SECONDS:
                self._store.leases.extend(self._owner)
                alive = time.monotonic()
        self._store.leases.release(self._owner)

    def _gathered(self) -> tuple[dict[bytes, bytes], bool]:
        """What has come within a short time, and whether more may come."""
        values: dict[bytes, bytes] = {}
        deadline = time.monotonic() + FLUSH_SECONDS
        while len(values) < _MOST:
            patience = max(0.0, deadline - time.monotonic()) if len(values) < BATCH else 0.0
            try:
                item = self._queue.get(timeout=patience) if patience else self._queue.get_nowait()
            except Empty:
                break
            if item is None:
                return values, False
            key, value = item
            values[key] = value
        return values, True
