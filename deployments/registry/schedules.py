"""Validate the cron expressions of deployments before they reach a server.

Prefect accepts some that it cannot, or should not, run: one without any date stops its scheduler for all deployments,
and a sixth field means seconds.
"""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import TypedDict

from prefect.server.schemas.schedules import CronSchedule

from metric_core.errors import ConfigError

_FIELDS = 5
_DATES = 400
"""Dates that are looked at to find how far apart those of a schedule are: a year of nights."""


class Schedule(TypedDict):
    """A schedule in the form of `prefect.yaml`."""

    cron: str
    timezone: str


def parse_schedule(cron: str, timezone: str) -> Schedule:
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
    dates = asyncio.run(CronSchedule(**schedule).get_dates(_DATES))
    found = [later - earlier for earlier, later in pairwise(dates)]
    return Gaps(min(found), max(found))
