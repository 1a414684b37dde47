"""Count the runs that a schedule makes."""

from datetime import datetime, timedelta
from math import ceil

from flows.config.deploy_options import DeploySettings
from flows.config.intervals import parse_interval
from metric_core.statistics.alarms import RUNS_OF_YEAR
from tasks.prefect_support.cron_dates import cron_dates

_WEEK, _MOMENT = timedelta(days=7), timedelta(microseconds=1)
_WEEKS = 366 / 7
_MOST_DATES = 7 * 24 * 60


def runs_per_year(deploy: DeploySettings, now: datetime) -> int:
    """Return the number of runs that a schedule makes in a year.

    Args:
        deploy: Options with the schedule; without one, a run a day is assumed.
        now: Time from which the dates of the schedule are counted.

    >>> from datetime import UTC
    >>> noon = datetime(2026, 11, 18, 12, tzinfo=UTC)
    >>> [runs_per_year(DeploySettings(cron=cron), noon) for cron in ("0 6 * * *", "0 * * * *", "0 6 * * 1")]
    [366, 8784, 53]
    >>> runs_per_year(DeploySettings(cron="0 6 1 1 *"), noon), runs_per_year(DeploySettings(interval="4h"), noon)
    (1, 2196)
    """
    if deploy.cron is None and deploy.interval is None:
        return RUNS_OF_YEAR
    if deploy.interval is not None:
        return max(1, ceil(timedelta(days=366) / parse_interval(deploy.interval)))
    in_week = _count_dates(deploy, now, now + _WEEK)
    return ceil(in_week * _WEEKS) if in_week else max(1, _count_dates(deploy, now, now + timedelta(days=366)))


def _count_dates(deploy: DeploySettings, start: datetime, end: datetime) -> int:
    return len(cron_dates(str(deploy.cron), deploy.timezone, _MOST_DATES, start, end - _MOMENT))
