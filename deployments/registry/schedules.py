"""Validate the schedules of deployments before they reach a server: cron expressions and intervals.

Prefect accepts some cron expressions that it cannot, or should not, run: one without any date stops its scheduler for
all deployments, and a sixth field means seconds.
"""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TypeAlias, TypedDict, final

from prefect.client.schemas.schedules import CronSchedule as ClientCronSchedule
from prefect.client.schemas.schedules import IntervalSchedule
from prefect.server.schemas.schedules import CronSchedule

from flows.config.intervals import parse_interval
from metric_core.errors import ConfigError

_FIELDS = 5
_DATES = 400
"""Dates that are looked at to find how far apart those of a schedule are: a year of nights."""


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
        timezone: Time zone of the schedule.

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
        shortest: Shortest time.
        longest: Longest time.
    """

    shortest: timedelta
    longest: timedelta


def find_gaps(schedule: Schedule) -> Gaps:
    """Return the times between two dates of a schedule, over the next 400 of them.

    Args:
        schedule: Schedule to look at.

    >>> gaps = find_gaps({"cron": "0 6 * * 1-5", "timezone": "UTC"})
    >>> str(gaps.shortest), str(gaps.longest)
    ('1 day, 0:00:00', '3 days, 0:00:00')
    """
    if "interval" in schedule:
        length = timedelta(seconds=schedule["interval"])
        return Gaps(length, length)
    dates = asyncio.run(CronSchedule(**schedule).get_dates(_DATES))
    found = [later - earlier for earlier, later in pairwise(dates)]
    return Gaps(min(found), max(found))
