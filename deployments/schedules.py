"""When deployments run by themselves: cron expressions, checked before they reach a server."""

from typing import TypedDict

from prefect.client.schemas.schedules import CronSchedule

from metric_core.errors import ConfigError


class Schedule(TypedDict):
    """A schedule as `prefect.yaml` has it."""

    cron: str
    timezone: str


def schedule_of(cron: str, timezone: str) -> Schedule:
    """The schedule of a cron expression.

    Raises:
        ConfigError: it is none, or there is no such time zone.

    >>> schedule_of("0 6 * * *", "Europe/Berlin")
    {'cron': '0 6 * * *', 'timezone': 'Europe/Berlin'}
    """
    try:
        CronSchedule(cron=cron, timezone=timezone)
    except ValueError as error:
        raise ConfigError(
            f"a schedule is a cron expression such as '0 6 * * *' (minute, hour, day, month, weekday) in a time zone "
            f"such as Europe/Berlin, got {cron!r} in {timezone!r}"
        ) from error
    return {"cron": cron, "timezone": timezone}
