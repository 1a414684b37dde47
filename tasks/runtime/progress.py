"""Who wants to know how far the stages are: stages report here, a command line or a notebook listens."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from metric_core.stages import Stage

Listener: TypeAlias = Callable[[Stage, int, int | None], None]
"""Called with a stage, by how much it got further, and by how much its total grew (None: unchanged)."""

_listeners: list[Listener] = []


def advance(stage: Stage, done: int = 0, total: int | None = None) -> None:
    """Reports that a stage got further by `done` units and has `total` more units to do."""
    for listener in tuple(_listeners):
        listener(stage, done, total)


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Sends the reports of this process's stages to the listener."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
