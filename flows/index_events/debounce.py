"""Choose the version of an index that a run evaluates: the newest among the events that wait for a run.

Each event creates a flow run of the deployment, which is due after the quiet period. The first of a burst to start
waits until no further event has arrived for that period, and takes the newest version that can be evaluated among those
that wait. Once it has evaluated that version, it ends the runs of older ones as Superseded before they start a process.
Events whose runs the server has lost, or not created yet, count too. The server's triggers do not debounce: Prefect
evaluates proactive triggers by the time at which an event occurred, so they drop events that arrive late, and one event
of a fast clock hides all that follow it.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun
from prefect.runtime import deployment, flow_run
from prefect.states import Completed

from flows.index_events.index_event import ArrivedEvent, IndexRebuilt
from flows.index_events.unhandled import find_unhandled
from metric_core.errors import ConfigError
from tasks.prefect_support.paging import read_flow_runs
from tasks.prefect_support.patience import wait_for_server
from tasks.runs.index_versions import newest

_POLL = 2.0
"""Longest pause in seconds between two looks at the runs that wait."""


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A valid event, and the flow run that waits to evaluate it."""

    run: UUID
    event: ArrivedEvent
    rebuilt: IndexRebuilt


def claim_newest(
    own: ArrivedEvent, quiet: timedelta, longest: timedelta, can_evaluate: Callable[[IndexRebuilt], bool]
) -> IndexRebuilt:
    """Wait until the burst of an event is over, and return the newest version of its index that can be evaluated.

    The parameters of this run then say what it evaluates, so that it does so again after a crash. A version that cannot
    be evaluated takes the place of no other: its own run reports it.

    Args:
        own: The event that created this run.
        quiet: Time without a further event that ends a burst.
        longest: Longest time that an event waits for the end of its burst.

    Raises:
        ConfigError: The event of this run is invalid.
    """
    mine = WaitingRun(UUID(str(flow_run.id)), own, own.rebuilt())
    with get_client(sync_client=True) as client:
        run = wait_for_server(lambda: client.read_flow_run(mine.run))
        if run.deployment_id is None or not can_evaluate(mine.rebuilt):  # started manually, so no other run waits
            return mine.rebuilt
        return _claim_until_quiet(client, run, mine, (quiet, longest), can_evaluate)


def supersede_older(evaluated: IndexRebuilt) -> None:
    """End the runs that wait to evaluate a version of the same index that is not newer than an evaluated one."""
    with get_client(sync_client=True) as client:
        run = wait_for_server(lambda: client.read_flow_run(UUID(str(flow_run.id))))
        if run.deployment_id is None:
            return
        for each in wait_for_server(lambda: _read_waiting(client, run, evaluated.index)):
            if not each.rebuilt.place.is_newer_than(evaluated.place):
                _supersede(client, each, evaluated, run.name)


def newest_of(waiting: Sequence[WaitingRun]) -> WaitingRun:
    """Return the run with the newest version.

    Args:
        waiting: Runs that wait for the same index, at least one.
    """
    best = newest(each.rebuilt.place for each in waiting)
    return next(each for each in waiting if each.rebuilt.place == best)


def parameters_of(waiting: WaitingRun) -> dict[str, Any]:
    """Return the parameters of a run that evaluates an event."""
    return {
        **waiting.rebuilt.payload,
        "announced": waiting.rebuilt.announced.isoformat(),
        "event": waiting.event.parameter,
    }


def seconds_to_wait(arrivals: Sequence[datetime], now: datetime, quiet: timedelta, longest: timedelta) -> float:
    """Return the seconds until a burst is over, or its first event has waited for the longest time; at most 0 if so.

    Args:
        arrivals: Times at which the events arrived, at least one.
        quiet: Time without a further event that ends a burst.
        longest: Longest time that an event waits.
    """
    return min(max(arrivals) + quiet - now, min(arrivals) + longest - now).total_seconds()


def _claim_until_quiet(
    client: SyncPrefectClient,
    run: FlowRun,
    mine: WaitingRun,
    limits: tuple[timedelta, timedelta],
    can_evaluate: Callable[[IndexRebuilt], bool],
) -> IndexRebuilt:
    """Take the newest version as the events of a burst arrive, and return it when the burst is over."""
    quiet, longest = limits
    best, arrivals, seen = mine, [mine.event.received], set[UUID]()
    started = changed = time.monotonic()
    while True:
        waiting = wait_for_server(lambda: _read_waiting(client, run, mine.rebuilt.index))
        if others := [each for each in waiting if each.run not in seen]:
            changed = time.monotonic()
            arrivals += (each.event.received for each in others)
            seen.update(each.run for each in others)
            best = _take_newest(client, run, best, [each for each in others if can_evaluate(each.rebuilt)])
        now = time.monotonic()
        # The clocks of the server and of this machine may differ, which must not make the run wait any longer.
        left = min(changed + quiet.total_seconds(), started + longest.total_seconds()) - now
        left = min(left, seconds_to_wait(arrivals, datetime.now(UTC), quiet, longest))
        if left <= 0:
            lost = [each for each in _find_lost(client, run, best) if can_evaluate(each.rebuilt)]
            return _take_newest(client, run, best, lost).rebuilt
        time.sleep(min(left, _POLL))


def _find_lost(client: SyncPrefectClient, run: FlowRun, best: WaitingRun) -> list[WaitingRun]:
    """Return the events of the index whose runs the server has not created, as if this run had them."""
    resource = best.event.resource
    lost = wait_for_server(lambda: find_unhandled(client, datetime.now(UTC), timedelta(0), resource))
    mine = (each.event for each in lost if each.deployment == deployment.name)
    return [each for each in map(partial(_waiting_run, run.id), (event.parameter for event in mine)) if each]


def _take_newest(client: SyncPrefectClient, run: FlowRun, best: WaitingRun, others: Sequence[WaitingRun]) -> WaitingRun:
    """Let this run evaluate the newest version, and return it."""
    newer = newest_of([best, *others])
    if newer is not best:
        parameters = {**run.parameters, **parameters_of(newer)}
        wait_for_server(lambda: client.update_flow_run(run.id, parameters=parameters))
    return newer


def _read_waiting(client: SyncPrefectClient, run: FlowRun, index: str) -> list[WaitingRun]:
    scheduled = {"state": {"type": {"any_": ["SCHEDULED"]}}}
    found = read_flow_runs(client, scheduled, {"id": {"any_": [run.deployment_id]}})
    waiting = (_waiting_run(each.id, each.parameters.get("event")) for each in found if each.id != run.id)
    return [each for each in waiting if each is not None and each.rebuilt.index == index]


def _waiting_run(run: UUID, parameter: Any) -> WaitingRun | None:
    """Return the run of a valid event; the run of an invalid one reports it when it starts."""
    if not isinstance(parameter, Mapping):
        return None
    try:
        event = ArrivedEvent.from_parameter(parameter)
        return WaitingRun(run, event, event.rebuilt())
    except ConfigError:
        return None


def _supersede(client: SyncPrefectClient, each: WaitingRun, evaluated: IndexRebuilt, by: str) -> None:
    message = (
        f"version {each.rebuilt.version} of index {each.rebuilt.index} is covered by the flow run {by}, which "
        f"evaluates version {evaluated.version}"
    )
    ended: Any = Completed(name="Superseded", message=message)
    wait_for_server(lambda: client.set_flow_run_state(each.run, ended, force=True))
