"""Scheduled runs that did not run, and those that still wait."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.schedules import CronSchedule, IntervalSchedule

from flows.monitoring.missed_runs import MissedRuns, is_overdue, missed_between

MONDAY = datetime(2026, 11, 16, 6, tzinfo=UTC)
DAY = timedelta(days=1)


def find_missed(schedule: Any, since: datetime, until: datetime) -> list[str]:
    missed = missed_between([schedule], since, until)
    return [] if missed is None else [f"{date.astimezone(UTC):%d %H:%M}" for date in missed.dates]


@pytest.mark.parametrize(
    ("cron", "since", "until", "dates"),
    [
        ("0 6 * * *", timedelta(seconds=9), DAY + timedelta(seconds=20), []),
        ("0 6 * * *", timedelta(seconds=9), 3 * DAY + timedelta(seconds=9), ["17 06:00", "18 06:00"]),
        ("0 6 * * *", timedelta(hours=3), 3 * DAY + timedelta(hours=9), ["17 06:00", "18 06:00"]),
        ("0 6 * * *", timedelta(seconds=9), timedelta(hours=5), []),  # a run out of turn
        ("0 6 * * 1-5", 4 * DAY + timedelta(minutes=1), 7 * DAY + timedelta(minutes=1), []),
        ("0 6 * * 1-5", 3 * DAY + timedelta(minutes=1), 7 * DAY + timedelta(minutes=1), ["20 06:00"]),
    ],
)
def test_missed_runs_are_the_dates_of_the_schedule_between_two_runs(
    cron: str, since: timedelta, until: timedelta, dates: list[str]
) -> None:
    schedule = CronSchedule(cron=cron, timezone="UTC")
    assert find_missed(schedule, MONDAY + since, MONDAY + until) == dates


def test_time_zone_and_interval_are_kept() -> None:
    berlin = CronSchedule(cron="0 6 * * *", timezone="Europe/Berlin")
    assert find_missed(berlin, MONDAY, MONDAY + 2 * DAY) == ["17 05:00"]
    hours = IntervalSchedule(interval=timedelta(hours=4), anchor_date=MONDAY)
    assert find_missed(hours, MONDAY + timedelta(minutes=1), MONDAY + timedelta(hours=12)) == ["16 10:00", "16 14:00"]


def test_many_missed_runs_are_counted_and_the_first_are_named() -> None:
    missed = MissedRuns(MONDAY, tuple(MONDAY + n * DAY for n in range(1, 9)))
    assert missed.sentence.startswith("8 runs were missed since 2026-11-16 06:00 UTC: those of 2026-11-17 06:00, ")
    assert missed.sentence.endswith("2026-11-21 06:00 and 3 more UTC")
    incident = missed.incident("7")
    assert (incident.kind, incident.since, incident.run_id) == ("missed", MONDAY + DAY, "7")


@pytest.mark.parametrize(
    ("changes", "is_over"),
    [
        ({}, True),
        ({"auto_scheduled": False}, False),  # started by a person
        ({"state_type": StateType.RUNNING}, False),
        ({"run_count": 1}, False),  # resumed after a crash
        ({"expected_start_time": MONDAY + DAY}, False),
        ({"id": UUID(int=1)}, False),
    ],
)
def test_only_runs_of_the_schedule_that_wait_are_overdue(changes: dict[str, Any], is_over: bool) -> None:
    run = FlowRun.model_validate(
        {
            "id": UUID(int=2),
            "flow_id": UUID(int=3),
            "auto_scheduled": True,
            "state_type": StateType.SCHEDULED,
            "run_count": 0,
            "expected_start_time": MONDAY,
        }
        | changes
    )
    assert is_overdue(run, UUID(int=1), MONDAY + timedelta(minutes=1)) is is_over
