"""Find out whether messages about an evaluation are silenced."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from flows.config.alert_options import MaintenanceWindow
from metric_core.errors import ConfigError
from tasks.history.operator_log import Silence
from tasks.prefect_support.cron_dates import cron_dates

_LOOKED_AT = 1000
"""Number of beginnings of a period that are looked at."""


def active_silence(
    silences: Sequence[Silence],
    windows: Sequence[MaintenanceWindow],
    now: datetime,
    steady: datetime | None = None,
) -> Silence | None:
    """Return the silence that holds at a time and ends last; None if there is none.

    Args:
        windows: Periods of maintenance, which are silences that come back.
        steady: Time by which a silence is over; None means the same time.

    Raises:
        ConfigError: The cron expression or the time zone of a period is invalid.
    """
    active = [each for each in silences if each.begins <= now and (steady or now) < each.ends]
    active += [found for window in windows if (found := _maintenance(window, now)) is not None]
    return max(active, key=lambda each: each.ends, default=None)


def check_maintenance(windows: Sequence[MaintenanceWindow], now: datetime) -> None:
    """Check that periods of maintenance end.

    Raises:
        ConfigError: A period begins again before it is over, always, or its cron expression or time zone is invalid.
    """
    for window in windows:
        dates = _dates(window, _LOOKED_AT, now, now + timedelta(days=366))
        length = timedelta(hours=window.hours)
        if len(dates) > 1 and all(after - before <= length for before, after in pairwise(dates)):
            raise ConfigError(
                f"deploy.alerts.maintenance never ends: {window.cron!r} begins again within its {window.hours:g} "
                "hours. Give it fewer hours, or fewer dates"
            )


def _maintenance(window: MaintenanceWindow, now: datetime) -> Silence | None:
    length = timedelta(hours=window.hours)
    begun = _dates(window, 1, now - length + timedelta(seconds=1), now)
    if begun:
        check_maintenance([window], now)
    return Silence(begun[0], begun[0] + length, "maintenance") if begun else None


def _dates(window: MaintenanceWindow, most: int, start: datetime, end: datetime) -> list[datetime]:
    try:
        return cron_dates(window.cron, window.timezone, most, start, end)
    except ValueError as error:
        raise ConfigError(
            f"deploy.alerts.maintenance needs a cron expression and a time zone, got {window.cron!r} in "
            f"{window.timezone!r}"
        ) from error
