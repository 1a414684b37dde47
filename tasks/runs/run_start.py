"""Record the trigger of a monitored run and the time at which it was due: the entry `start` of run.json."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime

from tasks.record.outcome import Trigger
from tasks.record.run_record import StartRecord


@dataclass(frozen=True, slots=True)
class RunStart:
    """The start of a monitored run.

    Args:
        due: Time at which it was due: of a scheduled run that of its schedule, of others that of their flow run.
    """

    trigger: Trigger
    due: datetime

    @property
    def entry(self) -> StartRecord:
        """The entry of the record of the run, with the time in UTC.

        >>> RunStart("schedule", datetime(2026, 11, 18, 6, tzinfo=UTC)).entry
        StartRecord(trigger='schedule', due='2026-11-18T06:00:00+00:00')
        """
        return StartRecord(trigger=self.trigger, due=self.due.astimezone(UTC).isoformat())

    @contextmanager
    def apply(self) -> Iterator[None]:
        """Make this the start of the runs that are opened in the block."""
        token = _start.set(self)
        try:
            yield
        finally:
            _start.reset(token)


_start: ContextVar[RunStart | None] = ContextVar("run_start", default=None)


def start_entry() -> StartRecord | None:
    """Return what the record of the current run says of its start; None if the run is not monitored."""
    start = _start.get()
    return None if start is None else start.entry
