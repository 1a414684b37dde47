"""Pass the progress of stages to listeners, such as a command line or a notebook."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from metric_core.stages import Stage

Listener: TypeAlias = Callable[[Stage, int, int | None], None]
"""Called with a stage, the number of units done, and the number of units by which its total grew (None: unchanged)."""

_listeners: list[Listener] = []


def advance(stage: Stage, done: int = 0, total: int | None = None) -> None:
    """Report that a stage has done more units or has more units to do.

    Args:
        done: Number of units that it has done since the last report.
        total: Number of units by which its total grew; None if it did not change.
    """
    for listener in tuple(_listeners):
        listener(stage, done, total)


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Send the reports of the stages of this process to a listener during the block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
