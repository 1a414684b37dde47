"""Find the scheduled runs that a run comes after and that never started, and end those that still wait.

A worker that was away takes up all the runs that were due meanwhile, one after the other. They would all evaluate the
same data, so the first of them to start replaces the others, and says how many there were. A run that started and
failed, or that is resumed after a crash, has not been missed: it is reported by other means. A run that is not missed
but starts, or is resumed, so late that the Prefect server has reported it says so, because people wait to hear of it.
A run that failed before it could report anything gets its entry in the history from the next one.
"""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas import State
from prefect.client.schemas.filters import DeploymentFilter, FlowRunFilter
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.runtime import flow_run
from prefect.states import Cancelled

from tasks.history.recorded_run import COMPLETED, MISSED, RecordedRun, missed_run_id
from tasks.prefect_support.paging import PAGE, read_flow_runs
from tasks.prefect_support.patience import wait_for_server
from tasks.record.outcome import OutcomeIncident

KEY = "missed runs"
"""Key of the incident."""

STATE = "Missed"
"""Name of the state of a run that another one replaces."""

SCHEDULED = "auto-scheduled"
"""Tag that Prefect gives to the runs of a schedule."""

WAITS = "AwaitingConcurrencySlot"
"""Name of the state of a run that waits for another one to end."""

_NOT_STARTED = "it was due, and nothing started it"
_NOT_REPORTED = "it ended as {}, and recorded nothing; its log in Prefect says why"
_MAKING = timedelta(minutes=1)
"""Time after which the schedules of a new deployment are there."""

_MOST_DATES = 500
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class MissedRun:
    """A scheduled run that did not start.

    Args:
        flow_run: Id of the flow run, which ended as Missed; None if the server made none, or has pruned it.
    """

    due: datetime
    flow_run: UUID | None = None


@dataclass(frozen=True, slots=True)
class UnreportedRun:
    """A scheduled run that failed before it could report anything.

    Args:
        started: Time at which it started.
        state: Name of its final state.
        is_crashed: True if its process died, and nothing has resumed it.
    """

    flow_run: UUID
    due: datetime
    started: datetime
    state: str
    is_crashed: bool = False


@dataclass(frozen=True, slots=True)
class MissedRuns:
    """Scheduled runs that did not start, or not in time, or could not report.

    Args:
        since: Time at which the last run before them was due.
        runs: The runs that did not start, oldest first; at most 500.
        late: Time at which the run was due that started late; None if it started in time.
        is_resumed: True if that run was resumed late after a crash.
        unreported: The runs that failed before they could report.
    """

    since: datetime
    runs: tuple[MissedRun, ...] = ()
    late: datetime | None = None
    is_resumed: bool = False
    unreported: tuple[UnreportedRun, ...] = ()

    @property
    def sentence(self) -> str:
        """The runs in words.

        >>> from datetime import timedelta
        >>> start = datetime(2026, 11, 17, 6, tzinfo=UTC)
        >>> MissedRuns(start, tuple(MissedRun(start + timedelta(days=n)) for n in (1, 2))).sentence
        '2 runs were missed since 2026-11-17 06:00 UTC: those of 2026-11-18 06:00 and 2026-11-19 06:00 UTC'
        >>> MissedRuns(start, (MissedRun(start + timedelta(days=1)),)).sentence
        '1 run was missed since 2026-11-17 06:00 UTC: that of 2026-11-18 06:00 UTC'
        >>> MissedRuns(start, (), late=start + timedelta(days=1)).sentence
        'the run of 2026-11-18 06:00 UTC started late'
        """
        count = len(self.runs)
        if self._crashed and self.late is None and not count:
            return f"the run of {_show(self._crashed[0].due)} UTC crashed and was not resumed"
        if self.late is not None and not count:
            return f"the run of {_show(self.late)} UTC {'was resumed' if self.is_resumed else 'started'} late"
        words = ("run was", "that") if count == 1 else ("runs were", "those")
        shown = [_show(each.due) for each in self.runs[: _SHOWN if count > _SHOWN + 1 else count]]
        last = f"{count - len(shown)} more" if len(shown) < count else shown.pop()
        dates = f"{', '.join(shown)} and {last}" if shown else last
        more = "at least " if count >= _MOST_DATES else ""
        return f"{more}{count} {words[0]} missed since {_show(self.since)} UTC: {words[1]} of {dates} UTC"

    @property
    def _crashed(self) -> list[UnreportedRun]:
        """The runs that the server has reported as not resumed."""
        return [each for each in self.unreported if each.is_crashed]

    def incident(self, run_id: str) -> OutcomeIncident | None:
        """Return the missed runs as an incident, which is over when it is reported; None if there are none."""
        times = [*(each.due for each in self.runs), *(each.due for each in self._crashed)]
        times += [] if self.late is None else [self.late]
        if not times:
            return None
        since = min(times)
        return OutcomeIncident(key=KEY, kind="missed", sentence=self.sentence, since=since, run_id=run_id)

    def entries(self, name: str) -> list[RecordedRun]:
        """Return the runs that were missed, or could not report, as entries of the history."""
        missed = (
            RecordedRun.without_results(
                str(run.flow_run or missed_run_id(name, run.due)), name, run.due, "missed", _NOT_STARTED, "schedule"
            )
            for run in self.runs
        )
        failed = (
            RecordedRun.without_results(
                str(run.flow_run), name, run.started, "failed", _NOT_REPORTED.format(run.state), "schedule", run.due
            )
            for run in self.unreported
        )
        return [*missed, *failed]


@dataclass(frozen=True, slots=True)
class ActiveSchedule:
    """A schedule of a deployment.

    Args:
        schedule: The schedule, as Prefect's client has it.
        since: Time from which it is in force; None for always.
    """

    schedule: Any
    since: datetime | None = None

    def dates(self, since: datetime, until: datetime) -> list[datetime]:
        """Return the dates after a time and up to another, at most 500."""
        start = since if self.since is None else max(since, self.since)
        return [date.astimezone(UTC) for date in _dates(self.schedule, start, until) if start < date <= until]


def find_missed_runs(runs: Sequence[RecordedRun], patience: timedelta) -> MissedRuns | None:
    """Return the runs of this flow run's schedule that were due since the last finished run and are not in the history.

    The server says which runs were due and which started, the history too: each knows runs that the other has pruned.

    Args:
        runs: Runs of the evaluation in the history, those that were missed, too.
        patience: Time after which the server reports a run that has not started.

    Returns:
        The runs that were missed or could not report; None if there are none and this run started in time, if it was
        not scheduled, or if no scheduled run came before it.
    """
    with get_client(sync_client=True) as client:
        run = wait_for_server(lambda: client.read_flow_run(UUID(str(flow_run.id))))
        deployment_id = run.deployment_id
        if deployment_id is None or not run.auto_scheduled:
            return None
        deployment = wait_for_server(lambda: client.read_deployment(deployment_id))
        until = run.start_time or datetime.now(UTC)  # the next run may be due before this one ends
        known = [each for each in runs if _is_scheduled(each, deployment.name)]  # the evaluation of this run, too
        finished = [each for each in known if each.outcome is not None and each.status == COMPLETED]
        last = max(finished, key=lambda each: each.created, default=None)
        times = wait_for_server(lambda: _read_last_run(client, run, until)) if last is None else _times(last)
        if times is None:  # the first run, which may be late all the same
            times = (_due_date(run), _due_date(run))
        start, since = times
        due = wait_for_server(lambda: _read_due(client, run, since, until))
        states = wait_for_server(lambda: client.read_flow_run_states(run.id))
    # A schedule that is as old as its deployment is not a changed one: the deployment was made again, as after the loss
    # of the server's database, and its runs were due before, too.
    made = None if deployment.created is None or last is None else deployment.created + _MAKING
    schedules = [
        ActiveSchedule(each.schedule, None if made and each.created and start < each.created <= made else each.created)
        for each in deployment.schedules
        if each.active
    ]
    recorded = {each.due for each in runs} | {each.run_id for each in runs}
    places = [each.due or each.created for each in [*known, *(each for each in runs if each.status == MISSED)]]
    missed = missed_between(schedules, since, until, due, places, own=_due_date(run))
    is_resumed = run.run_count > 1
    if _was_resumed_late(states, start, patience) if is_resumed else _started_late(states, until, patience):
        missed = replace(missed or MissedRuns(since), late=_due_date(run), is_resumed=is_resumed)
    failed = (each for each in due if not recorded & {_due_date(each), str(each.id)})
    if unreported := tuple(found for each in sorted(failed, key=_due_date) if (found := _unreported(each)) is not None):
        missed = replace(missed or MissedRuns(since), unreported=unreported)
    if missed is None and (late := _failed_late(due, run, patience)) is not None:
        return MissedRuns(since, late=late)
    return missed


def missed_between(  # noqa: PLR0913 what the server, the history and the run itself know
    schedules: Iterable[ActiveSchedule],
    since: datetime,
    until: datetime,
    flow_runs: Collection[FlowRun] = (),
    starts: Iterable[datetime] = (),
    *,
    own: datetime | None = None,
) -> MissedRuns | None:
    """Return the runs that were due between two others.

    Args:
        since: Time at which the earlier run was due: one that started late may have started after the next was due.
        until: Start of the later run.
        flow_runs: Scheduled runs that the server has, whether they started or not.
        starts: Times at which runs in the history were due, or started where that is not known; each run takes the
            place of the last date up to it.
        own: Date at which the later run was due; None for the last date before its start.
    """
    due: dict[datetime, UUID | None] = {date: None for each in schedules for date in each.dates(since, until)}
    due |= {_due_date(each): each.id for each in flow_runs}
    dates = sorted(date for date in due if since < date <= until)
    taken = {_due_date(each) for each in flow_runs if _has_started(each) or _was_cancelled(each)}
    taken.update(max((date for date in dates if date <= start), default=start) for start in starts)
    taken.add(max(dates, default=until) if own is None else own)
    missed = [MissedRun(date, due[date]) for date in dates if date not in taken]
    return MissedRuns(since, tuple(missed[:_MOST_DATES])) if missed else None


def end_overdue_runs() -> int:
    """End the scheduled runs that wait for this one, which replaces them, and return their number."""
    with get_client(sync_client=True) as client:
        run = wait_for_server(lambda: client.read_flow_run(UUID(str(flow_run.id))))
        if run.deployment_id is None or not run.auto_scheduled:
            return 0
        overdue = [each for each in wait_for_server(lambda: _read_scheduled(client, run)) if is_overdue(each, run.id)]
        state: Any = Cancelled(name=STATE, message=f"was due while nothing ran; the run {run.name} replaces it")
        for each in overdue:
            wait_for_server(lambda each=each: client.set_flow_run_state(each.id, state, force=True))  # type: ignore[misc]
        return len(overdue)


def is_overdue(run: FlowRun, own: UUID, now: datetime | None = None) -> bool:
    """Return whether a run of a schedule was due and waits.

    Args:
        own: Id of the run that asks.
        now: Time to compare with, by default the present.
    """
    due = run.expected_start_time
    waits = run.state_type is StateType.SCHEDULED and run.auto_scheduled and not _has_started(run)
    return waits and run.id != own and due is not None and due <= (now or datetime.now(UTC))


def _is_scheduled(run: RecordedRun, deployment: str) -> bool:
    """Return whether a recorded run was one of a schedule; a run without an outcome says only whose run it was."""
    return run.deployment == deployment if run.outcome is None else run.outcome.trigger == "schedule"


def _has_started(run: FlowRun) -> bool:
    """Return whether a run has started at some time, whatever became of it: one that is resumed waits again.

    A run that is ended before it starts has a start time too.
    """
    return run.run_count > 0


def _was_cancelled(run: FlowRun) -> bool:
    """Return whether a person cancelled a run."""
    return run.state_type is StateType.CANCELLED and run.state_name != STATE


def _started_late(states: Sequence[State[Any]], started: datetime, patience: timedelta) -> bool:
    """Return whether the server has reported that a run had not started: not if it waited for another."""
    late = [state.timestamp for state in states if state.name == "Late"]
    return bool(late) and started - min(late) > patience and all(state.name != WAITS for state in states)


def _failed_late(due: Collection[FlowRun], own: FlowRun, patience: timedelta) -> datetime | None:
    """Return when an earlier run was due that started late and has no result: no run has said yet that it started."""
    return max(
        (
            _due_date(each)
            for each in due
            if each.id != own.id and each.start_time is not None and _has_started(each)
            if each.start_time - _due_date(each) > patience and each.state_type is StateType.FAILED
        ),
        default=None,
    )


def _was_resumed_late(states: Sequence[State[Any]], since: datetime, patience: timedelta) -> bool:
    """Return whether the server has reported that a crashed run was not resumed, and no run has started since."""
    signs = (each for each in states if each.type in (StateType.RUNNING, StateType.CRASHED) or each.name == WAITS)
    return any(
        crashed.type is StateType.CRASHED
        and crashed.timestamp > since
        and after.timestamp - crashed.timestamp > patience
        for crashed, after in pairwise(sorted(signs, key=lambda each: each.timestamp))
    )


def _unreported(run: FlowRun) -> UnreportedRun | None:
    """Return a run of the schedule if it failed; whether it is in the history is not known."""
    if run.state_type not in (StateType.FAILED, StateType.CRASHED) or run.start_time is None or not _has_started(run):
        return None
    is_crashed = run.state_type is StateType.CRASHED
    return UnreportedRun(run.id, _due_date(run), run.start_time, str(run.state_name), is_crashed)


def _due_date(run: FlowRun) -> datetime:
    due = run.expected_start_time
    assert due is not None  # noqa: S101 every run of a schedule has one
    return due.astimezone(UTC)


def _read_scheduled(client: SyncPrefectClient, run: FlowRun) -> list[FlowRun]:
    due = {"state": {"type": {"any_": ["SCHEDULED"]}}, "expected_start_time": {"before_": datetime.now(UTC)}}
    return read_flow_runs(client, due, {"id": {"any_": [run.deployment_id]}})


def _read_due(client: SyncPrefectClient, run: FlowRun, since: datetime, until: datetime) -> list[FlowRun]:
    """Return the runs of the schedule that were due between two times."""
    due = {"tags": {"all_": [SCHEDULED]}, "expected_start_time": {"after_": since, "before_": until}}
    return read_flow_runs(client, due, {"id": {"any_": [run.deployment_id]}})


def _times(run: RecordedRun) -> tuple[datetime, datetime]:
    """Return when a run started, and when it was due; the start for both if that is not known."""
    return run.created, run.due or run.created


def _read_last_run(client: SyncPrefectClient, run: FlowRun, until: datetime) -> tuple[datetime, datetime] | None:
    """Return when the last run of the schedule that started before this one started, and when it was due."""
    found = client.read_flow_runs(
        flow_run_filter=FlowRunFilter.model_validate(
            {"tags": {"all_": [SCHEDULED]}, "start_time": {"before_": until, "is_null_": False}}
        ),
        deployment_filter=DeploymentFilter.model_validate({"id": {"any_": [run.deployment_id]}}),
        sort=FlowRunSort.START_TIME_DESC,
        limit=PAGE,
    )
    started = (each for each in found if each.id != run.id and _has_started(each))
    return next(((each.start_time, _due_date(each)) for each in started if each.start_time is not None), None)


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
