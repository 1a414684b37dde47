"""Start threads, and apply a function to many arguments at the same time."""

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from metric_core.errors import AssayError

A = TypeVar("A")
B = TypeVar("B")


_logger = logging.getLogger(__name__)


class ThreadLimitError(AssayError):
    """The machine or container lets this process start no more threads."""


def start_thread(name: str, work: Callable[..., object], *arguments: Any, daemon: bool = True) -> Thread:
    """Start a thread and return it.

    Args:
        daemon: True if the process need not wait for its end.

    Raises:
        ThreadLimitError: It cannot be started.
    """
    thread = Thread(target=work, args=arguments, name=name, daemon=daemon)
    try:
        thread.start()
    except RuntimeError as error:
        raise ThreadLimitError(
            f"the thread {name!r} cannot be started: {error}. The machine or container allows too few processes; "
            "raise their limit (`ulimit -u`, `pids_limit` of a container)"
        ) from error
    return thread


class WorkerThreads:
    """Threads that are all started at once, and call what is submitted until they are closed.

    Args:
        name: Beginning of their names.
        wanted: Number of threads; fewer, with a warning, if not so many can be started.

    Raises:
        ThreadLimitError: No thread can be started.
    """

    def __init__(self, name: str, wanted: int) -> None:
        self._submitted: SimpleQueue[tuple[Callable[..., object], tuple[Any, ...]] | None] = SimpleQueue()
        self.count = 0
        """Number of the threads."""
        for number in range(wanted):
            try:
                start_thread(f"{name}-{number}", self._work)
            except ThreadLimitError as error:
                if not number:
                    raise
                _logger.warning("%d threads compute at the same time instead of %d: %s", number, wanted, error)
                break
            self.count += 1

    def submit(self, work: Callable[..., object], *arguments: Any) -> None:
        """Call a function, which must raise no error, in the next thread that is free."""
        self._submitted.put((work, arguments))

    def close(self) -> None:
        """End the threads once they have called everything that was submitted. Closing twice does nothing."""
        for _ in range(self.count):
            self._submitted.put(None)
        self.count = 0

    def _work(self) -> None:
        while (submitted := self._submitted.get()) is not None:
            work, arguments = submitted
            work(*arguments)
            del work, arguments, submitted  # what they hold must not wait for the next call


def map_threads(function: Callable[[A], B], arguments: Iterable[A], at_once: int) -> list[B]:
    """Return the results of a function, in the order of the arguments.

    Args:
        function: Function that mostly waits, or runs in Arrow or NumPy outside the interpreter's lock.
        at_once: Maximum number of calls at the same time.

    Raises:
        Exception: The first error of a call, in the order of the arguments; calls that have begun are waited for.

    >>> map_threads(len, ["a", "bb", ""], at_once=2)
    [1, 2, 0]
    """
    given = list(arguments)
    if len(given) < 2:
        return list(map(function, given))
    with ThreadPoolExecutor(at_once) as threads:
        return list(threads.map(function, given))
