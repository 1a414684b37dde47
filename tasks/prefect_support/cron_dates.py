"""Compute the dates of a cron expression; only the models of Prefect's server can."""

import asyncio
from datetime import datetime


def cron_dates(cron: str, timezone: str, most: int, start: datetime, end: datetime) -> list[datetime]:
    """Return the dates of a cron expression between two times, earliest first.

    Args:
        most: Number of dates to return at most; Prefect returns no more than 1000.

    Raises:
        ValueError: The expression or the time zone is invalid.

    >>> from datetime import UTC
    >>> [f"{date:%d %H:%M}" for date in cron_dates("0 6 * * *", "UTC", 5, datetime(2026, 11, 1, tzinfo=UTC),
    ...                                            datetime(2026, 11, 3, tzinfo=UTC))]
    ['01 06:00', '02 06:00']
    """
    from prefect.server.schemas.schedules import CronSchedule  # noqa: PLC0415 takes a while, and is needed only here

    return list(asyncio.run(CronSchedule(cron=cron, timezone=timezone).get_dates(most, start=start, end=end)))
