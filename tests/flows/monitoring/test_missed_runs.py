"""Scheduled runs that did not run, and those that still wait."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.schedules import CronSchedule, IntervalSchedule
from prefect.states import AwaitingConcurrencySlot, Cancelled, Completed, Crashed, Failed, Late, Running, Scheduled

from flows.monitor import monitor
from flows.monitoring.missed_runs import (
    STATE,
    ActiveSchedule,
    MissedRun,
    MissedRuns,
    find_missed_runs,
    is_overdue,
    missed_between,
)
from tasks.history.recorded_run import RecordedRun
from tasks.prefect_support.paging import read_flow_runs
from tasks.record.outcome import RunOutcome
from tests.flows.deployed_flow import DeployedFlow

MONDAY = datetime(2026, 11, 16, 6, tzinfo=UTC)
DAY = timedelta(days=1)


def find_missed(schedule: Any, since: datetime, until: datetime) -> list[str]:
    return dates_of(missed_between([ActiveSchedule(schedule)], since, until))


def dates_of(missed: MissedRuns | None) -> list[str]:
    return [] if missed is None else [f"{each.due:%d %H:%M}" for each in missed.runs]


def make_run(day: int, state: StateType = StateType.SCHEDULED, **content: Any) -> FlowRun:
    """Return a run of the schedule that is due some days after Monday."""
    fixed = {"id": UUID(int=day), "flow_id": UUID(int=3), "auto_scheduled": True}
    due = MONDAY + day * DAY
    return FlowRun.model_validate(fixed | {"state_type": state, "expected_start_time": due} | content)


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
    missed = MissedRuns(MONDAY, tuple(MissedRun(MONDAY + n * DAY) for n in range(1, 9)))
    assert missed.sentence.startswith("8 runs were missed since 2026-11-16 06:00 UTC: those of 2026-11-17 06:00, ")
    assert missed.sentence.endswith("2026-11-21 06:00 and 3 more UTC")
    incident = missed.incident("7")
    assert incident is not None
    assert (incident.kind, incident.since, incident.run_id) == ("missed", MONDAY + DAY, "7")


def test_run_that_started_is_not_missed_whatever_became_of_it() -> None:
    cases: list[tuple[FlowRun, bool]] = [
        (make_run(1, StateType.FAILED, run_count=1, state_name="Error"), False),
        (make_run(1, StateType.RUNNING, run_count=1), False),
        (make_run(1, StateType.CRASHED, run_count=1), False),
        (make_run(1, run_count=1), False),  # waits for its restart
        (make_run(1, StateType.CANCELLED, state_name="Cancelled"), False),  # by a person
        (make_run(1, StateType.CANCELLED, state_name=STATE, start_time=MONDAY), True),
        (make_run(1, state_name="Late"), True),
        (make_run(1, StateType.CRASHED), True),  # the worker could not start its process
    ]
    for run, is_missed in cases:
        daily = ActiveSchedule(CronSchedule(cron="0 6 * * *", timezone="UTC"))
        missed = missed_between([daily], MONDAY, MONDAY + 2 * DAY + timedelta(seconds=20), [run])
        assert (missed is not None) is is_missed, (run, is_missed)
        assert missed is None or missed.runs == (MissedRun(MONDAY + DAY, run.id),), (run, is_missed)


def test_a_run_stands_for_its_own_date_and_not_for_later_ones() -> None:
    daily = ActiveSchedule(CronSchedule(cron="0 6 * * *", timezone="UTC"))
    started, waits = make_run(1, StateType.RUNNING, run_count=1), make_run(2, state_name="Late")
    until = MONDAY + 2 * DAY + timedelta(hours=1)
    missed = missed_between([daily], MONDAY, until, [started, waits], own=MONDAY + DAY)
    assert dates_of(missed) == ["18 06:00"]
    assert missed_between([daily], MONDAY, until, [started], own=MONDAY + 2 * DAY) is None
    own = MONDAY + DAY  # the run before it started later than that
    assert dates_of(missed_between([daily], own + timedelta(hours=1), until, [waits], own=own)) == ["18 06:00"]


def test_history_knows_what_the_server_has_pruned() -> None:
    daily = ActiveSchedule(CronSchedule(cron="0 6 * * *", timezone="UTC"))
    starts = [MONDAY + 2 * DAY + timedelta(hours=1)]
    assert dates_of(missed_between([daily], MONDAY, MONDAY + 4 * DAY, [], starts)) == ["17 06:00", "19 06:00"]


def test_dates_of_a_new_schedule_begin_with_it() -> None:
    hourly = CronSchedule(cron="0 * * * *", timezone="UTC")
    changed = MONDAY + DAY + timedelta(hours=9)
    late = make_run(1)
    missed = missed_between([ActiveSchedule(hourly, changed)], MONDAY, changed + timedelta(hours=1), [late])
    assert dates_of(missed) == ["17 06:00"]  # the server made a run by the schedule before


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
    fixed: dict[str, Any] = {"id": UUID(int=2), "run_count": 0}
    run = make_run(0, **fixed | changes)
    assert is_overdue(run, UUID(int=1), MONDAY + timedelta(minutes=1)) is is_over


class DeployedSchedule(DeployedFlow):
    """A deployment whose schedule has made runs in the past.

    Args:
        days: Number of days, of which today is the last.
    """

    def __init__(self, client: Any, days: int) -> None:
        super().__init__(client, monitor, {"config": {}})
        now = datetime.now(UTC).replace(microsecond=0)
        daily = IntervalSchedule(interval=DAY, anchor_date=now - timedelta(minutes=1))
        client.create_deployment_schedules(self.id, [DeploymentScheduleCreate(schedule=daily, active=True)])
        start = (now - (days - 0.5) * DAY).isoformat()
        window = {"start_time": start, "end_time": now.isoformat(), "min_runs": days}
        client.request("POST", "/deployments/{id}/schedule", path_params={"id": self.id}, json=window)
        # The server's scheduler may have made the runs of the coming days meanwhile.
        runs = [each for each in read_flow_runs(client, {}, {"id": {"any_": [self.id]}}) if self.due(each) <= now]
        self.runs = sorted(runs, key=self.due)
        assert len(self.runs) == days

    @staticmethod
    def due(run: FlowRun) -> datetime:
        assert run.expected_start_time is not None
        return run.expected_start_time

    def set_states(self, number: int, *states: State[Any]) -> None:
        for state in states:
            self.client.set_flow_run_state(self.runs[number].id, state, force=True)

    def make_entry(self, number: int, **content: Any) -> RecordedRun:
        """Return the entry of a run in the history."""
        start = self.due(self.runs[number]) + timedelta(seconds=9)
        fixed: dict[str, Any] = {"run_id": uuid4().hex, "name": "support", "folder": "", "status": "completed"}
        return RecordedRun(**fixed | {"created": start} | content)


@pytest.fixture
def schedule(prefect_server: str) -> Iterator[DeployedSchedule]:
    del prefect_server
    with get_client(sync_client=True) as client:
        yield DeployedSchedule(client, 7)


@pytest.mark.prefect
def test_only_runs_that_never_started_are_missed(schedule: DeployedSchedule, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule.set_states(0, Running(), Completed())
    schedule.set_states(1, Running(), Failed(name="Error"))
    schedule.set_states(2, Late(), Cancelled(name=STATE))
    schedule.set_states(3, Running(), Crashed(), Scheduled())
    schedule.set_states(4, Running())
    schedule.set_states(6, Running())
    monkeypatch.setenv("PREFECT__FLOW_RUN_ID", str(schedule.runs[6].id))
    finished = schedule.make_entry(0, outcome=RunOutcome(name="support", trigger="schedule"))
    missed = find_missed_runs([finished], DAY)
    assert missed is not None
    assert missed.runs == tuple(MissedRun(schedule.due(each), each.id) for each in (schedule.runs[2], schedule.runs[5]))
    failed = schedule.make_entry(5, status="failed", deployment=schedule.name)
    missed = find_missed_runs([finished, failed], DAY)
    assert missed is not None
    assert [each.flow_run for each in missed.runs] == [schedule.runs[2].id]
    missed = find_missed_runs([], DAY)  # the history is lost: the server knows which run started last
    assert missed is not None
    assert [each.flow_run for each in missed.runs] == [schedule.runs[5].id]


@pytest.mark.prefect
def test_dates_before_a_deployment_that_was_made_again_come_from_the_history(
    prefect_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del prefect_server
    with get_client(sync_client=True) as client:
        schedule = DeployedSchedule(client, 1)
        schedule.set_states(0, Running())
        monkeypatch.setenv("PREFECT__FLOW_RUN_ID", str(schedule.runs[0].id))
        due = schedule.due(schedule.runs[0]) - 3 * DAY
        outcome = RunOutcome(name="support", trigger="schedule")
        kept = schedule.make_entry(0, outcome=outcome, created=due + timedelta(seconds=9), due=due)
        missed = find_missed_runs([kept], DAY)
        assert missed is not None
        assert [each.due for each in missed.runs] == [due + DAY, due + 2 * DAY]
        assert find_missed_runs([], DAY) is None


@pytest.mark.prefect
def test_a_run_that_was_due_while_another_waited_is_missed_once(
    schedule: DeployedSchedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        schedule.set_states(number, Running(), Completed())
    for number in (4, 5):
        schedule.set_states(number, Late(), Cancelled(name=STATE))
    schedule.set_states(6, Running())
    monkeypatch.setenv("PREFECT__FLOW_RUN_ID", str(schedule.runs[6].id))
    times = {"created": schedule.due(schedule.runs[4]) + timedelta(hours=1), "due": schedule.due(schedule.runs[3])}
    late = schedule.make_entry(3, outcome=RunOutcome(name="support", trigger="schedule"), **times)
    missed = find_missed_runs([late], DAY)
    assert missed is not None
    assert [each.flow_run for each in missed.runs] == [schedule.runs[4].id, schedule.runs[5].id]
    told = missed.entries("support")[:1]  # by a run that started before the last one
    missed = find_missed_runs([late, *told], DAY)
    assert missed is not None
    assert [each.flow_run for each in missed.runs] == [schedule.runs[5].id]


@pytest.mark.prefect
def test_a_run_that_waited_takes_its_own_date_and_not_the_next(
    schedule: DeployedSchedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        schedule.set_states(number, Running(), Completed())
    schedule.set_states(6, Late(), Cancelled(name=STATE))
    schedule.set_states(5, AwaitingConcurrencySlot(), Running())
    monkeypatch.setenv("PREFECT__FLOW_RUN_ID", str(schedule.runs[5].id))
    finished = schedule.make_entry(4, outcome=RunOutcome(name="support", trigger="schedule"))
    times = {"created": datetime.now(UTC), "due": schedule.due(schedule.runs[5])}
    own = schedule.make_entry(5, deployment=schedule.name, **times)  # its evaluation, which is not reported yet
    missed = find_missed_runs([finished, own], DAY)
    assert missed is not None
    assert [each.flow_run for each in missed.runs] == [schedule.runs[6].id]


@pytest.mark.prefect
def test_a_run_that_was_reported_as_not_started_says_that_it_has_started(
    schedule: DeployedSchedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        schedule.set_states(number, Running(), Completed())
    schedule.set_states(6, Late(), Running())
    monkeypatch.setenv("PREFECT__FLOW_RUN_ID", str(schedule.runs[6].id))
    finished = schedule.make_entry(5, outcome=RunOutcome(name="support", trigger="schedule"))
    missed = find_missed_runs([finished], timedelta(0))
    assert missed is not None
    assert (missed.runs, missed.late) == ((), schedule.due(schedule.runs[6]).astimezone(UTC))
    assert missed.sentence.endswith("started late")
    assert missed.entries("support") == []
    assert find_missed_runs([finished], timedelta(minutes=15)) is None
    assert find_missed_runs([finished], timedelta(seconds=30)) is None  # due a minute ago, and late for less
    schedule.set_states(6, AwaitingConcurrencySlot(), Running())
    assert find_missed_runs([finished], timedelta(0)) is None  # another run was reported as stuck


@pytest.mark.prefect
def test_first_run_that_was_reported_as_not_started_says_that_it_has_started(
    prefect_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del prefect_server
    with get_client(sync_client=True) as client:
        schedule = DeployedSchedule(client, 1)
        schedule.set_states(0, Late(), Running())
        monkeypatch.setenv("PREFECT__FLOW_RUN_ID", str(schedule.runs[0].id))
        missed = find_missed_runs([], timedelta(0))
        assert missed is not None
        assert missed.sentence.endswith("started late")
        assert find_missed_runs([], DAY) is None


@pytest.mark.prefect
def test_run_that_started_late_and_failed_is_said_to_have_started_by_the_next(
    schedule: DeployedSchedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        schedule.set_states(number, Running(), Completed())
    schedule.set_states(5, Late(), Running(), Failed(name="Error"))  # it was due a day before it started
    schedule.set_states(6, Running())
    monkeypatch.setenv("PREFECT__FLOW_RUN_ID", str(schedule.runs[6].id))
    finished = schedule.make_entry(4, outcome=RunOutcome(name="support", trigger="schedule"))
    failed = schedule.make_entry(5, status="failed", deployment=schedule.name, run_id=str(schedule.runs[5].id))
    missed = find_missed_runs([finished, failed], timedelta(minutes=15))
    assert missed is not None
    assert (missed.runs, missed.late) == ((), schedule.due(schedule.runs[5]).astimezone(UTC))


@pytest.mark.prefect
def test_a_run_that_was_reported_as_not_resumed_says_that_it_is(
    schedule: DeployedSchedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        schedule.set_states(number, Running(), Completed())
    schedule.set_states(6, Running(), Crashed(), Scheduled(), Running())
    monkeypatch.setenv("PREFECT__FLOW_RUN_ID", str(schedule.runs[6].id))
    finished = schedule.make_entry(5, outcome=RunOutcome(name="support", trigger="schedule"))
    assert find_missed_runs([finished], timedelta(minutes=1)) is None
    missed = find_missed_runs([finished], timedelta(0))
    assert missed is not None
    assert missed.sentence.endswith("was resumed late")
    told = schedule.make_entry(6, outcome=finished.outcome, created=datetime.now(UTC) + timedelta(seconds=1))
    assert find_missed_runs([finished, told], timedelta(0)) is None  # another run has started, and said so


@pytest.mark.prefect
def test_runs_that_could_not_report_are_entries_and_crashes_that_nothing_resumed_are_over(
    schedule: DeployedSchedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    states: list[State[Any]] = [Completed(), Failed(), Failed(name="Error"), Completed(), Completed(), Crashed()]
    for number, state in enumerate(states):
        schedule.set_states(number, Running(), state)
    schedule.set_states(6, Running())
    monkeypatch.setenv("PREFECT__FLOW_RUN_ID", str(schedule.runs[6].id))
    outcome = RunOutcome(name="support", trigger="schedule")
    first = schedule.make_entry(0, outcome=outcome)
    told = schedule.make_entry(2, status="failed", deployment=schedule.name, run_id=str(schedule.runs[2].id))
    missed = find_missed_runs([first, told], DAY)
    assert missed is not None
    assert [(each.run_id, each.status, each.due) for each in missed.entries("support")] == [
        (str(run.id), "failed", schedule.due(run).astimezone(UTC)) for run in (schedule.runs[1], schedule.runs[5])
    ]
    assert "it ended as Failed, and recorded nothing" in missed.entries("support")[0].reason
    incident = missed.incident("7")
    assert incident is not None
    assert incident.sentence.endswith("UTC crashed and was not resumed")
    schedule.set_states(5, Completed())
    missed = find_missed_runs([first, told], DAY)
    assert missed is not None
    assert (len(missed.unreported), missed.incident("7")) == (1, None)  # the server tells of its end
