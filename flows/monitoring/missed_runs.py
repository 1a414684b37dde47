"""Find the scheduled runs that a run comes after and that never ran, and end those that still wait.

A worker that was away takes up all the runs that were due meanwhile, one after the other. They would all evaluate the
same data, so the first of them to start stands for all, and says how many there were.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.runtime import flow_run
from prefect.states import Cancelled

from tasks.history.recorded_run import RecordedRun
from tasks.prefect_support.deployed_run import is_deployed
from tasks.prefect_support.paging import read_flow_runs
from tasks.prefect_support.patience import wait_for_server
from tasks.runs.outcome import OutcomeIncident

KEY = "missed runs"
"""Key of the incident."""

STATE = "Missed"
"""Name of the state of a run that another one stands for."""

_MOST_DATES = 500
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class MissedRuns:
    """Scheduled runs that did not run.

    Args:
        since: Start of the last run before them.
        dates: Times at which they were due, oldest first; at most 500.
    """

    since: datetime
    dates: tuple[datetime, ...]

    @property
    def sentence(self) -> str:
        """The runs in words.

        >>> from datetime import timedelta
        >>> start = datetime(2026, 11, 17, 6, tzinfo=UTC)
        >>> MissedRuns(start, (start + timedelta(days=1), start + timedelta(days=2))).sentence
        '2 runs were missed since 2026-11-17 06:00 UTC: those of 2026-11-18 06:00 and 2026-11-19 06:00 UTC'
        >>> MissedRuns(start, (start + timedelta(days=1),)).sentence
        '1 run was missed since 2026-11-17 06:00 UTC: that of 2026-11-18 06:00 UTC'
        """
        count = len(self.dates)
        words = ("run was", "that") if count == 1 else ("runs were", "those")
        shown = [_show(date) for date in self.dates[: _SHOWN if count > _SHOWN + 1 else count]]
        last = f"{count - len(shown)} more" if len(shown) < count else shown.pop()
        dates = f"{', '.join(shown)} and {last}" if shown else last
        more = "at least " if count >= _MOST_DATES else ""
        return f"{more}{count} {words[0]} missed since {_show(self.since)} UTC: {words[1]} of {dates} UTC"

    def incident(self, run_id: str) -> OutcomeIncident:
        """Return the missed runs as an incident, which is over when people are told of it.

        Args:
            run_id: Id of the run that says so.
        """
        return OutcomeIncident(key=KEY, kind="missed", sentence=self.sentence, since=self.dates[0], run_id=run_id)


def find_missed_runs(runs: Sequence[RecordedRun]) -> MissedRuns | None:
    """Return the runs of this flow run's schedule that were due since the last run and did not run.

    Args:
        runs: Runs of the evaluation in the history, oldest first; that of this flow run is passed over.

    Returns:
        The missed runs; None if there are none, if this run was not scheduled, or if no scheduled run came before it.
    """
    if not is_deployed():
        return None
    with get_client(sync_client=True) as client:
        run = wait_for_server(lambda: client.read_flow_run(UUID(str(flow_run.id))))
        deployment_id = run.deployment_id
        if deployment_id is None or not run.auto_scheduled:
            return None
        deployment = wait_for_server(lambda: client.read_deployment(deployment_id))
    before = [
        each.created
        for each in runs
        if each.run_id != str(run.id) and each.outcome is not None and each.outcome.trigger == "schedule"
    ]
    if not before:
        return None
    schedules = [each.schedule for each in deployment.schedules if each.active]
    # A run that was due while this one went on is not missed, but the next.
    return missed_between(schedules, max(before), run.start_time or datetime.now(UTC))


def missed_between(schedules: Sequence[Any], since: datetime, until: datetime) -> MissedRuns | None:
    """Return the runs that were due between two others, the second of which stands for the last of them.

    Args:
        schedules: Schedules as Prefect's client has them.
        since: Start of the first of these runs.
        until: Start of the second.
    """
    dates = {date for schedule in schedules for date in _dates(schedule, since, until) if since < date <= until}
    missed = tuple(sorted(dates)[:-1])
    return MissedRuns(since, missed) if missed else None


def end_overdue_runs() -> int:
    """End the scheduled runs that wait for this one, and return their number: this run stands for them all."""
    with get_client(sync_client=True) as client:
        run = wait_for_server(lambda: client.read_flow_run(UUID(str(flow_run.id))))
        if run.deployment_id is None or not run.auto_scheduled:
            return 0
        overdue = [each for each in wait_for_server(lambda: _read_scheduled(client, run)) if is_overdue(each, run.id)]
        state: Any = Cancelled(name=STATE, message=f"was due while nothing ran; the run {run.name} stands for it")
        for each in overdue:
            wait_for_server(lambda each=each: client.set_flow_run_state(each.id, state, force=True))  # type: ignore[misc]
        return len(overdue)


def is_overdue(run: FlowRun, own: UUID, now: datetime | None = None) -> bool:
    """Return whether a run of a schedule was due and waits.

    Args:
        run: Run to look at.
        own: Id of the run that asks.
        now: Time to compare with, by default the present.
    """
    due = run.expected_start_time
    waits = run.state_type is StateType.SCHEDULED and run.auto_scheduled and run.run_count == 0
    return waits and run.id != own and due is not None and due <= (now or datetime.now(UTC))


def _read_scheduled(client: SyncPrefectClient, run: FlowRun) -> list[FlowRun]:
    due = {"state": {"type": {"any_": ["SCHEDULED"]}}, "expected_start_time": {"before_": datetime.now(UTC)}}
    return read_flow_runs(client, due, {"id": {"any_": [run.deployment_id]}})


def _dates(schedule: Any, since: datetime, until: datetime) -> list[datetime]:
    """Return the dates of a schedule; only the models of Prefect's server can compute them."""
    from prefect.server.schemas import schedules  # noqa: PLC0415 takes a while, and is needed only here

    kinds: dict[str, Any] = {
        "cron": schedules.CronSchedule,
        "interval": schedules.IntervalSchedule,
        "rrule": schedules.RRuleSchedule,
    }
    kind = next((kind for name, kind in kinds.items() if hasattr(schedule, name)), None)
    if kind is None:  # a run without a schedule has no dates
        return []
    known: Any = kind.model_validate(schedule.model_dump())
    return list(asyncio.run(known.get_dates(_MOST_DATES + 1, start=since, end=until)))


def _show(date: datetime) -> str:
    return f"{date.astimezone(UTC):%Y-%m-%d %H:%M}"
