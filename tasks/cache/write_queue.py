"""Write answers to the cache while others are still being computed, and send the heartbeats of their owners.

All computations of a process share one background thread: a few large transactions cost less than many small ones, and
do not wait for each other. The thread writes every twentieth of a second: a process that is killed loses no more than
that.
"""

import logging
import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import TypeAlias

FLUSH_SECONDS = 0.05
"""Seconds for which an answer waits to be written together with others."""

BATCH = 512
"""Number of answers that are written without waiting for more."""

HEARTBEAT_SECONDS = 2.5

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class QueuedValue:
    """A value to write.

    Args:
        step: Kind of the value.
        key: Digest of all that determines it.
        value: Its bytes.
        owner: Owner of the lease on the value.
        replaces: If true, it replaces a cached value; otherwise that stays.
    """

    step: str
    key: bytes
    value: bytes
    owner: str
    replaces: bool


Write: TypeAlias = Callable[[Sequence[QueuedValue]], None]
Beat: TypeAlias = Callable[[Collection[str]], None]


class WriteQueue:
    """A queue of the values of one cache. May be used from several threads.

    Its thread runs while the queue has an owner.
    """

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._lock = Lock()
        self._owners: set[str] = set()
        self._queue: SimpleQueue[QueuedValue | Event] = SimpleQueue()

    def open(self, owner: str, write: Write, beat: Beat) -> None:
        """Send the heartbeats of an owner from now on.

        Args:
            owner: Name that no other owner has.
            write: Function that writes values and ends the leases on them; the same for all owners.
            beat: Function that renews the leases of owners; the same for all owners.
        """
        if self._process != os.getpid():
            self._reset()  # the thread, and whoever held the lock, stayed in the process that this one was forked from
        with self._lock:
            is_first = not self._owners
            self._owners.add(owner)
            if is_first:
                self._queue = SimpleQueue()
                Thread(target=self._work, args=(self._queue, write, beat), name="answers", daemon=True).start()

    def put(self, value: QueuedValue) -> None:
        """Queue a value and return at once.

        Args:
            value: Value of an owner of the queue.
        """
        self._queue.put(value)

    def close(self, owner: str) -> bool:
        """Wait until all values that were put are written, and end the heartbeats of an owner.

        Args:
            owner: Owner of the queue.

        Returns:
            True if it was the last owner.
        """
        written = Event()
        with self._lock:
            # Owners that open the queue after its last one has left get another thread, with a queue of its own.
            queue = self._queue
            self._owners.discard(owner)
            is_last = not self._owners
            queue.put(written)
        written.wait()
        return is_last

    def _work(self, queue: "SimpleQueue[QueuedValue | Event]", write: Write, beat: Beat) -> None:
        last_heartbeat = time.monotonic()
        is_open = True
        while is_open:
            values, left = _next_batch(queue)
            try:
                if values:
                    write(values)
                with self._lock:
                    owners = frozenset(self._owners) if self._queue is queue else frozenset()
                    is_open = bool(owners) or not queue.empty()
                if owners and time.monotonic() - last_heartbeat > HEARTBEAT_SECONDS:
                    beat(owners)
                    last_heartbeat = time.monotonic()
            except Exception:
                _logger.exception("answers could not be written to the cache; a run that needs them asks again")
            finally:
                if left is not None:
                    left.set()


def _next_batch(queue: "SimpleQueue[QueuedValue | Event]") -> tuple[list[QueuedValue], Event | None]:
    """Return the values queued within a short time, and the event of an owner that leaves."""
    values: list[QueuedValue] = []
    deadline = time.monotonic() + FLUSH_SECONDS
    while True:
        timeout = max(0.0, deadline - time.monotonic()) if len(values) < BATCH else 0.0
        try:
            item = queue.get(timeout=timeout) if timeout else queue.get_nowait()
        except Empty:
            return values, None
        if isinstance(item, Event):
            return values, item
        values.append(item)
