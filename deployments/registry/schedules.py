"""Validate the schedules of deployments before they reach a server: cron expressions and intervals.

Prefect accepts some cron expressions that it cannot, or should not, run: one without any date stops its scheduler for
all deployments, and a sixth field means seconds.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TypeAlias, TypedDict, final
from zoneinfo import ZoneInfo

from prefect.client.schemas.schedules import CronSchedule as ClientCronSchedule
from prefect.client.schemas.schedules import IntervalSchedule
from prefect.server.schemas.schedules import CronSchedule

from flows.config.intervals import parse_interval
from metric_core.errors import ConfigError

_FIELDS = 5
_DAYS = 400
"""Days that are looked at to find how far apart the dates of a schedule are: more than a year."""


_ANCHOR = datetime(2026, 1, 1, tzinfo=UTC)
"""Time from which intervals are counted; fixed, so that deploying again moves no run."""


@final
class CronTable(TypedDict):
    """A cron schedule in the form of `prefect.yaml`."""

    cron: str
    timezone: str


@final
class IntervalTable(TypedDict):
    """An interval schedule in the form of `prefect.yaml`: seconds from an anchor date."""

    interval: float
    anchor_date: str
    timezone: str


Schedule: TypeAlias = CronTable | IntervalTable


def schedule_of(cron: str | None, interval: str | None, timezone: str) -> Schedule | None:
    """Return the schedule that a configuration asks for; None for none.

    Raises:
        ConfigError: The schedule is invalid.
    """
    if interval is not None:
        return interval_schedule(interval, timezone)
    return None if cron is None else parse_schedule(cron, timezone)


def prefect_schedule(schedule: Schedule) -> ClientCronSchedule | IntervalSchedule:
    """Return a schedule as Prefect's client takes it."""
    kind = ClientCronSchedule if "cron" in schedule else IntervalSchedule
    return kind.model_validate(schedule)


def describe_schedule(schedule: object) -> str:
    """Return a schedule of Prefect's client in words; empty for a kind that `assay deploy` does not make.

    >>> describe_schedule(prefect_schedule(interval_schedule("1h30m", "UTC")))
    'every 1:30:00 UTC'
    >>> describe_schedule(prefect_schedule(parse_schedule("0 6 * * *", "UTC")))
    'cron 0 6 * * * UTC'
    """
    if isinstance(schedule, ClientCronSchedule):
        return f"cron {schedule.cron} {schedule.timezone}"
    return f"every {schedule.interval} {schedule.timezone}" if isinstance(schedule, IntervalSchedule) else ""


def interval_schedule(interval: str, timezone: str) -> IntervalTable:
    """Return the schedule of an interval.

    Args:
        interval: Days, hours and minutes, such as `4h` or `1d12h`.

    Raises:
        ConfigError: The interval or the time zone is invalid.

    >>> interval_schedule("4h", "UTC")["interval"]
    14400.0
    """
    try:
        length = parse_interval(interval)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    table = IntervalTable(interval=length.total_seconds(), anchor_date=_ANCHOR.isoformat(), timezone=timezone)
    try:
        prefect_schedule(table)
    except ValueError as error:
        raise ConfigError(f"an interval needs a time zone such as Europe/Berlin, got {timezone!r}") from error
    return table


def parse_schedule(cron: str, timezone: str) -> CronTable:
    """Return the schedule of a cron expression.

    Raises:
        ConfigError: The expression or the time zone is invalid, or the schedule has no date.

    >>> parse_schedule("0 6 * * *", "Europe/Berlin")
    {'cron': '0 6 * * *', 'timezone': 'Europe/Berlin'}
    """
    message = (
        "a schedule must be a cron expression such as '0 6 * * *' (minute, hour, day, month, weekday) in a time zone "
        f"such as Europe/Berlin, got {cron!r} in {timezone!r}"
    )
    if not timezone or not (cron.startswith("@") or len(cron.split()) == _FIELDS):
        raise ConfigError(message)
    try:
        schedule = CronSchedule(cron=cron, timezone=timezone)
    except ValueError as error:
        raise ConfigError(message) from error
    try:
        asyncio.run(schedule.get_dates(1))
    except ValueError as error:
        raise ConfigError(f"the schedule {cron!r} has no date: there is no such day") from error
    return {"cron": cron, "timezone": timezone}


@dataclass(frozen=True, slots=True)
class Gaps:
    """The times between two successive dates of a schedule.

    Args:
        longest: Longest time.
    """

    shortest: timedelta
    longest: timedelta


def find_gaps(schedule: Schedule) -> Gaps:
    """Return the times between two dates of a schedule.

    Dates of a cron expression are times of day on some days. Both are looked at on their own, because several hundred
    dates of a dense schedule need not reach its next pause, such as a weekend, or the night in which clocks change.

    >>> gaps = find_gaps({"cron": "0 6 * * 1-5", "timezone": "UTC"})
    >>> str(gaps.shortest), str(gaps.longest)
    ('1 day, 0:00:00', '3 days, 0:00:00')
    >>> gaps = find_gaps({"cron": "*/5 9-16 * * 1-5", "timezone": "UTC"})
    >>> str(gaps.shortest), str(gaps.longest)
    ('0:05:00', '2 days, 16:05:00')
    >>> str(find_gaps({"cron": "*/20 * * * *", "timezone": "Europe/Berlin"}).longest)
    '1:20:00'
    """
    if "interval" in schedule:
        length = timedelta(seconds=schedule["interval"])
        return Gaps(length, length)
    fields = schedule["cron"].split()
    if len(fields) == _FIELDS:
        days = _differences(_dates(" ".join(["0", "0", *fields[2:]]), _DAYS))
        times = list(_times_of_day(" ".join([*fields[:2], "*", "*", "*"])))
        overnight = [day + times[0] - times[-1] for day in (min(days), max(days))]
        found = [*_differences(times), *overnight]
    else:  # such as @daily
        found = _differences(_dates(schedule["cron"], _DAYS))
    return Gaps(min(found), max(found) + _clock_change(schedule["timezone"]))


def _dates(cron: str, count: int, start: datetime = _ANCHOR) -> list[datetime]:
    found = asyncio.run(CronSchedule(cron=cron, timezone="UTC").get_dates(count, start=start))
    return [datetime.fromtimestamp(date.timestamp(), UTC) for date in found]


def _times_of_day(cron: str) -> Iterator[datetime]:
    """Yield the dates of a day; Prefect gives at most 1000 at once."""
    half = timedelta(hours=12)
    for start in (_ANCHOR, _ANCHOR + half):
        yield from (date for date in _dates(cron, half // timedelta(minutes=1), start) if date < start + half)


def _differences(dates: Sequence[datetime]) -> list[timedelta]:
    return [later - earlier for earlier, later in pairwise(dates)]


def _clock_change(timezone: str) -> timedelta:
    """Return by how much the clocks of a time zone are put back, when a schedule pauses for as much longer."""
    zone = ZoneInfo(timezone)
    offsets = [(_ANCHOR + n * timedelta(days=30)).astimezone(zone).utcoffset() or timedelta(0) for n in range(13)]
    return max(offsets) - min(offsets)
