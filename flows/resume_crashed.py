"""The flow `rerun-crashed`: resume a flow run whose process died, with all that it had finished.

The same flow run runs again, in the work pool of its deployment. A run that has crashed repeatedly is not resumed,
because the next attempt would probably crash too: it has failed. If people wait for its result, it runs once more, only
to tell them so: it knows the recipients, the incidents and the history of its evaluation.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

from prefect import flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas import State, StateType
from prefect.client.schemas.objects import FlowRun
from prefect.runtime import flow_run
from prefect.states import Completed, Failed, Scheduled

from flows.execution.deployed_parameters import as_deployed
from metric_core.errors import AssayError
from tasks.prefect_support.deployed_run import is_deployed
from tasks.prefect_support.patience import crash_without_server, wait_for_server

MOST_CRASHES = 3
"""Number of crashes after which a run is not resumed."""

PAUSE = timedelta(seconds=15)
"""Delay before a resumed run starts: a worker reports a crash twice, seconds apart, and the second would end it."""

GIVEN_UP = "Given up"
"""Name of the state of a run that runs again only to tell people that it has crashed too often."""

_TELLING = ("monitor", "index-rebuilt")
"""Names of the flows that tell people of their runs."""

_UNDER_WAY = (StateType.SCHEDULED, StateType.PENDING, StateType.RUNNING)


class CrashedRunError(AssayError):
    """A run that has crashed too often to be resumed."""


@flow(name="rerun-crashed", persist_result=False, validate_parameters=False)
@crash_without_server
@as_deployed()
def rerun_crashed(flow_run_id: UUID, most_crashes: int = MOST_CRASHES) -> State[None]:
    """Resume a crashed flow run.

    Args:
        flow_run_id: The flow run.
        most_crashes: Number of crashes after which the run is not resumed, or only to tell people that it has failed.
    """
    with get_client(sync_client=True) as client:
        run = client.read_flow_run(flow_run_id)
        if run.state is None or run.state.type is not StateType.CRASHED:
            return Completed(name="NothingToDo", message=f"flow run {run.name} has not crashed, or has been resumed")
        if run.deployment_id is None:
            return Completed(name="NothingToDo", message=f"flow run {run.name} has no deployment that could resume it")
        crashes = _crashes(client.read_flow_run_states(flow_run_id))
        when = datetime.now(UTC) + PAUSE
        if crashes < most_crashes:
            again: State[None] = Scheduled(scheduled_time=when, message=f"runs again after crash {crashes}")
            client.set_flow_run_state(flow_run_id, again, force=True)
            return Completed(message=f"flow run {run.name} runs again")
        message = f"the run has crashed {crashes} times and is not resumed; see prefect flow-run logs {run.id}"
        given_up: State[None] = Failed(message=message)  # the server reports a scheduled run that failed
        if crashes == most_crashes and _tells(client, run):
            given_up = Scheduled(name=GIVEN_UP, scheduled_time=when, message=message)
        client.set_flow_run_state(flow_run_id, given_up, force=True)
        return Failed(message=message)


def find_given_up() -> CrashedRunError | None:
    """Return the error of the current flow run if it runs only to tell people that it has crashed too often."""
    if not is_deployed() or flow_run.run_count <= 1:
        return None
    with get_client(sync_client=True) as client:
        states = wait_for_server(lambda: client.read_flow_run_states(UUID(str(flow_run.id))))
    for state in sorted(states, key=lambda each: each.timestamp, reverse=True):
        if state.name == GIVEN_UP:
            return CrashedRunError(state.message)
        if state.type not in _UNDER_WAY:  # a person has started it again since
            break
    return None


def _tells(client: SyncPrefectClient, run: FlowRun) -> bool:
    return client.read_flow(run.flow_id).name in _TELLING


def _crashes(states: Sequence[State[Any]]) -> int:
    """Return the number of crashes of a run; a second report of the same crash does not count."""
    ordered = sorted(states, key=lambda state: state.timestamp)
    return sum(
        after.type is StateType.CRASHED and before.type in (StateType.RUNNING, StateType.PENDING)
        for before, after in pairwise(ordered)
    )
