"""Write answers to the cache while others are still being computed, and send the heartbeats of their owners.

All computations of a process share one background thread: a few large transactions cost less than many small ones, and
do not wait for each other. The thread writes every twentieth of a second, and sooner if many answers wait. In between
it sleeps: waking it for every answer would take the interpreter's lock from the others. Whoever puts answers faster
than they are written waits, so that a process that is killed loses few, however fast its judge is.
"""

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from threading import Event, Lock
from typing import NamedTuple, TypeAlias

from tasks.runtime.threads import ThreadLimitError, start_thread

FLUSH_SECONDS = 0.05
"""Seconds for which an answer waits to be written together with others."""

MAX_UNWRITTEN = 64
"""Number of answers that are written without waiting for more, and that a process loses at most when it is killed,
besides those that it still waits for."""

LONGEST_WAIT_SECONDS = 1.0
"""Seconds after which answers are queued although MAX_UNWRITTEN wait: a database that hangs holds up no judge."""

CLOSE_SECONDS = 120.0
"""Seconds after which an owner leaves although its answers are not written: several times as long as a statement may
take before the database counts as lost."""

HEARTBEAT_SECONDS = 2.5

_logger = logging.getLogger(__name__)


class QueuedValue(NamedTuple):
    """A value to write.

    Args:
        key: Digest of all that determines it.
        value: Its bytes.
        owner: Owner of the lease on the value.
        replaces: True if it replaces a cached value.
    """

    step: str
    key: bytes
    value: bytes
    owner: str
    replaces: bool


Write: TypeAlias = Callable[[Sequence[QueuedValue]], None]
Beat: TypeAlias = Callable[[Collection[str]], None]


class _Waiting:
    """The values that wait for one thread, and the events of owners that leave, in their order."""

    def __init__(self) -> None:
        self._items: deque[QueuedValue | Event] = deque()
        self._taken = 0
        self._hangs = False
        self._wake = Event()
        self._written = Event()

    def __bool__(self) -> bool:
        return bool(self._items)

    def put(self, value: QueuedValue) -> None:
        """Queue a value; first wait while too many values are not written, unless writing hangs."""
        if len(self._items) + self._taken >= MAX_UNWRITTEN and not self._hangs:
            self._wait_until_written()
        self._items.append(value)
        if len(self._items) == MAX_UNWRITTEN:
            self._wake.set()

    def _wait_until_written(self) -> None:
        deadline = time.monotonic() + LONGEST_WAIT_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            self._written.clear()
            if len(self._items) + self._taken < MAX_UNWRITTEN:
                return
            self._written.wait(left)
        self._hangs = True

    def put_end(self, written: Event) -> None:
        self._items.append(written)
        self._wake.set()

    def take(self) -> tuple[list[QueuedValue], Event | None]:
        """Return the values put within a short time, and the event of an owner that leaves."""
        self._wake.wait(FLUSH_SECONDS)
        self._wake.clear()
        values: list[QueuedValue] = []
        while self._items:
            self._taken += 1  # before the value leaves the queue, so that it is counted at all times
            item = self._items.popleft()
            if isinstance(item, Event):
                if self._items:
                    self._wake.set()
                return values, item
            values.append(item)
        return values, None

    def mark_written(self) -> None:
        """Let those continue who wait for the values that were taken."""
        self._taken = 0
        self._hangs = False
        self._written.set()


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
        self._queue = _Waiting()

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
                self._queue = _Waiting()
                try:
                    start_thread("answers", self._work, self._queue, write, beat)
                except ThreadLimitError:
                    self._owners.clear()  # the next owner must not rely on a thread that there is not
                    raise

    def put(self, value: QueuedValue) -> None:
        """Queue a value; first wait, at most LONGEST_WAIT_SECONDS, while MAX_UNWRITTEN values are not written."""
        self._queue.put(value)

    def close(self, owner: str) -> bool:
        """Wait until all values that were put are written, at most CLOSE_SECONDS, and end the heartbeats of an owner.

        Returns:
            True if it was the last owner.
        """
        written = Event()
        with self._lock:
            # Owners that open the queue after its last one has left get another thread with another queue.
            queue = self._queue
            self._owners.discard(owner)
            is_last = not self._owners
            queue.put_end(written)
        if not written.wait(CLOSE_SECONDS):
            _logger.warning(
                "answers are not written to the cache after %g seconds, and are not waited for any longer; a run that "
                "needs them may ask again",
                CLOSE_SECONDS,
            )
        return is_last

    def _work(self, queue: _Waiting, write: Write, beat: Beat) -> None:
        last_heartbeat = time.monotonic()
        is_open = True
        while is_open:
            values, left = queue.take()
            try:
                if values:
                    write(values)
                with self._lock:
                    owners = frozenset(self._owners) if self._queue is queue else frozenset()
                    is_open = bool(owners) or bool(queue)
                if owners and time.monotonic() - last_heartbeat > HEARTBEAT_SECONDS:
                    beat(owners)
                    last_heartbeat = time.monotonic()
            except Exception:
                _logger.exception("answers could not be written to the cache; a run that needs them asks again")
            finally:
                queue.mark_written()
                if left is not None:
                    left.set()
