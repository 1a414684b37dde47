"""Start threads, and apply a function to many arguments at the same time."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import Any, TypeVar

from metric_core.errors import AssayError

A = TypeVar("A")
B = TypeVar("B")


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
