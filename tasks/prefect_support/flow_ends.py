"""Note how the functions of flows end that people start, before their ends are reported to the Prefect server."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_ends: ContextVar[list[Any] | None] = ContextVar("ends", default=None)


@contextmanager
def collect_ends() -> Iterator[list[Any]]:
    """Collect what the functions of the flows that are called in the block return or raise."""
    ends: list[Any] = []
    token = _ends.set(ends)
    try:
        yield ends
    finally:
        _ends.reset(token)


def are_collected() -> bool:
    """Return whether the ends of flows are collected: they are part of something that a person started."""
    return _ends.get() is not None


def note_end(end: object) -> None:
    """Note the end of the current flow run, if ends are collected.

    Args:
        end: Result, final state or error.
    """
    if (ends := _ends.get()) is not None:
        ends.append(end)
