"""Apply a function to many arguments at the same time."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


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
