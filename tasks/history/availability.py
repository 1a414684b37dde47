"""Measure how many of the runs that a schedule wanted have a result."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from tasks.history.recorded_run import MISSED, RecordedRun

WINDOWS = (7, 30, 90)
"""Days over which the availability of an evaluation is measured."""

_ENDS = ("finished", "failed", "missed")


@dataclass(frozen=True, slots=True)
class Availability:
    """The scheduled runs of an evaluation over some days.

    A run that was judged, however badly, is finished. Runs that an event or a person started do not count, and neither
    does a run that is in progress.

    Args:
        days: Number of days before the time of measurement.
        finished: Number of runs with a result.
        failed: Number of runs that could not start, did not finish, have too few scores, or were not judged.
        missed: Number of runs that did not take place.
    """

    days: int
    finished: int
    failed: int
    missed: int

    @property
    def due(self) -> int:
        """The number of runs that were due."""
        return self.finished + self.failed + self.missed

    @property
    def share(self) -> float | None:
        """The share of the runs that were due that are finished; None if none was due."""
        return self.finished / self.due if self.due else None

    @property
    def entry(self) -> dict[str, Any]:
        """The figures as JSON."""
        return {**asdict(self), "due": self.due, "availability": self.share}


def measure_availability(runs: Sequence[RecordedRun], now: datetime) -> tuple[Availability, ...]:
    """Return the availability of an evaluation over each of `WINDOWS`.

    Runs that were due at the same time are one; it is finished if one of them is, and missed if all are.

    Args:
        runs: Runs of the evaluation, in any order.
        now: Time at which the windows end.

    >>> from datetime import UTC
    >>> start = datetime(2026, 11, 18, 6, tzinfo=UTC)
    >>> night = RecordedRun("1", "support", start, "", "completed", trigger="schedule")
    >>> lost = RecordedRun.without_results("2", "support", start - timedelta(days=1), "missed", "", "schedule")
    >>> week, *_ = measure_availability([lost, night], start + timedelta(hours=1))
    >>> week.due, week.finished, week.failed, week.missed, week.share
    (2, 1, 0, 1, 0.5)
    """
    ends: dict[datetime, str] = {}
    for run in runs:
        due = run.due or run.created
        if run.trigger == "schedule" and due <= now:
            end = "finished" if run.has_result else "missed" if run.status == MISSED else "failed"
            ends[due] = min(ends.get(due, end), end, key=_ENDS.index)
    return tuple(_count(ends, now, days) for days in WINDOWS)


def _count(ends: Mapping[datetime, str], now: datetime, days: int) -> Availability:
    found = [end for due, end in ends.items() if due > now - timedelta(days=days)]
    return Availability(days, *(found.count(end) for end in _ENDS))
