"""When the server reports a scheduled run, and when not, as its own code decides over hours and days."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from deployments.registry.report_events import WATCHED
from deployments.registry.schedules import Gaps
from deployments.registry.watch import Recipients, WatchedDeployment, watch_automations
from tests.deployments.registry.prefect_triggers import PrefectTriggers

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
SOON = timedelta(seconds=5)

Watch = Callable[..., PrefectTriggers]


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Return a function that deploys an evaluation with this time between two runs, at 05:58."""

    def start(gap: timedelta, patience: timedelta = 15 * MINUTE) -> PrefectTriggers:
        deployment = WatchedDeployment(
            id=UUID(int=9), name="monitor", evaluation="support", pool="p", gaps=Gaps(gap, gap), patience=patience
        )
        automations = watch_automations("rag-assay: monitor", deployment, Recipients(webhooks=(UUID(int=1),)))
        server = PrefectTriggers(automations, deployment.id, monkeypatch)
        server.send(timedelta(0), WATCHED)
        return server

    return start


def run(
    server: PrefectTriggers, due: timedelta, *, made: timedelta | None = None, last: str | None = "Completed"
) -> UUID:
    """Have a scheduled run take place.

    Args:
        server: Server with the automations.
        due: Time after the start at which the run is due.
        made: Time after the start at which the scheduler made it; by default long before.
        last: Its last state, a little later; None for a run that goes on.
    """
    new = uuid4()
    server.send(due + SOON, "Pending", new, is_first=made is not None and due - made < 5 * MINUTE)
    server.send(due + 2 * SOON, "Running", new)
    if last is not None:
        server.send(due + 6 * SOON, last, new)
    return new


def test_first_runs_of_a_dense_schedule_are_not_missing(watch: Watch) -> None:
    server = watch(MINUTE, 2 * MINUTE)
    for minute in range(1, 15):
        run(server, minute * MINUTE, made=timedelta(0))
    assert server.run_until(15 * MINUTE) == []


def test_dense_schedule_that_is_paused_for_minutes_and_resumed_is_not_missing(watch: Watch) -> None:
    server = watch(5 * MINUTE, 2 * MINUTE)
    for minute in (10, 15, 20):
        run(server, minute * MINUTE)
    for minute in range(30, 60, 5):  # resumed after 28 minutes
        run(server, minute * MINUTE, made=28 * MINUTE)
    assert server.run_until(HOUR) == []


@pytest.mark.simulation
def test_daily_run_right_after_deploying_or_resuming_is_not_missing(watch: Watch) -> None:
    server = watch(DAY)
    run(server, 2 * MINUTE, made=timedelta(0))
    for day in (1, 2, 3):
        due = day * DAY + 2 * MINUTE
        run(server, due, made=due - MINUTE)  # a schedule that is paused by day, or deployed again each morning
    assert server.run_until(3 * DAY + HOUR) == []


def test_changed_schedule_begins_anew(watch: Watch) -> None:
    server = watch(DAY)
    run(server, 17 * HOUR)
    server.send(28 * HOUR, WATCHED)  # deployed again: the next run is due at 05:00, 30 hours after the last
    run(server, 47 * HOUR)
    assert server.run_until(50 * HOUR) == []


@pytest.mark.simulation
def test_schedule_that_is_paused_is_reported_once(watch: Watch) -> None:
    server = watch(DAY)
    run(server, 2 * MINUTE)
    assert server.run_until(4 * DAY) == [("missing", 24 * 60 + 2 + 20)]


def test_run_that_crashes_after_a_late_start_and_is_not_resumed_is_reported(watch: Watch) -> None:
    server = watch(DAY)
    new = uuid4()
    server.send(2 * MINUTE, "Late", new)
    server.send(7 * MINUTE, "Running", new)
    server.send(9 * MINUTE, "Crashed", new)
    assert server.run_until(2 * HOUR) == [("late", 24)]


@pytest.mark.parametrize("patience", [1, 15])
def test_first_run_right_after_deploying_is_reported_though_its_events_come_late(watch: Watch, patience: int) -> None:
    server = watch(DAY, patience * MINUTE)
    server.send(2 * MINUTE, "Late", uuid4(), is_first=True)
    assert server.run_until(6 * HOUR) == [("late", 22)]


@pytest.mark.parametrize("patience", [1, 15, 30])
def test_late_runs_are_one_message_until_a_run_has_started(watch: Watch, patience: int) -> None:
    gap = 2 * HOUR
    server = watch(gap, patience * MINUTE)
    for number in range(3):
        server.send(number * gap + 2 * MINUTE, "Late", uuid4())
    run(server, 5 * HOUR)
    server.send(6 * HOUR + 2 * MINUTE, "Late", uuid4())
    assert server.run_until(8 * HOUR) == [("late", 2 + patience), ("late", 6 * 60 + 2 + patience)]


def test_run_that_is_resumed_after_a_crash_is_not_reported(watch: Watch) -> None:
    server = watch(DAY)
    new = run(server, 2 * MINUTE, last="Crashed")
    for after, state in ((3, "Scheduled"), (4, "Pending"), (5, "Running"), (30, "Completed")):
        server.send(after * MINUTE, state, new)
    run(server, DAY + 2 * MINUTE)
    assert server.run_until(DAY + HOUR) == []


def test_run_that_hangs_after_it_was_resumed_is_stuck(watch: Watch) -> None:
    server = watch(2 * HOUR)
    new = run(server, 2 * MINUTE, last="Crashed")
    server.send(4 * MINUTE, "Running", new)
    for minute in range(120, 300, 5):
        server.send(minute * MINUTE, "AwaitingConcurrencySlot", uuid4())
    server.send(3 * HOUR, "Crashed", new)
    server.send(3 * HOUR + MINUTE, "Running", new)
    server.send(4 * HOUR, "Cancelled", new)
    assert server.run_until(5 * HOUR) == [("stuck", 2 * 60 + 4 + 15), ("stuck over", 4 * 60)]


@pytest.mark.parametrize("after", ["AwaitingConcurrencySlot", "Cancelled"])
def test_late_run_that_waits_for_another_or_was_cancelled_is_not_reported(watch: Watch, after: str) -> None:
    server = watch(DAY)
    new = uuid4()
    server.send(2 * MINUTE, "Late", new)
    server.send(3 * MINUTE, after, new)
    assert server.run_until(6 * HOUR) == []


@pytest.mark.simulation
def test_failures_in_a_row_are_one_message(watch: Watch) -> None:
    server = watch(DAY)
    for day in range(3):
        run(server, day * DAY + 2 * MINUTE, last="Failed")
    run(server, 3 * DAY + 2 * MINUTE, last="Error")  # tells of itself
    run(server, 4 * DAY + 2 * MINUTE, last="Failed")
    assert [kind for kind, _ in server.run_until(5 * DAY)] == ["failed", "failed over", "failed"]
