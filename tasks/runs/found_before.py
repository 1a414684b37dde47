"""Pass what was found out before a run began on to its record, as entries of findings."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from tasks.record.findings import HasEntry

_found: ContextVar[Sequence[HasEntry]] = ContextVar("found_before", default=())


@contextmanager
def found_before(entries: Sequence[HasEntry]) -> Iterator[None]:
    """Make these the entries of the records of runs that are opened in the block, besides their own."""
    token = _found.set(entries)
    try:
        yield
    finally:
        _found.reset(token)


def entries_before() -> Sequence[HasEntry]:
    """Return the entries that the record of the current run begins with."""
    return _found.get()
