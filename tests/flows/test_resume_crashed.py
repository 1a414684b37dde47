"""The flow `rerun-crashed`: a run is resumed until it has crashed too often, and has failed then."""

from typing import Any

import pytest
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun, State
from prefect.states import Crashed, Running

from flows.resume_crashed import rerun_crashed

pytestmark = [pytest.mark.prefect]


def crash(client: SyncPrefectClient, run: FlowRun) -> None:
    """Begin a run, and report twice that it crashed, as workers do."""
    states: list[State[Any]] = [Running(), Crashed(), Crashed()]
    for state in states:
        client.set_flow_run_state(run.id, state, force=True)


def test_run_is_resumed_after_a_crash_and_fails_after_too_many(prefect_server: str) -> None:
    del prefect_server
    with get_client(sync_client=True) as client:
        deployment = client.create_deployment(client.create_flow_from_name("nightly"), "crashing")
        run = client.create_flow_run_from_deployment(deployment)
        found = []
        for _ in range(3):
            crash(client, run)
            rerun_crashed(run.id, return_state=True)
            state = client.read_flow_run(run.id).state
            assert state is not None
            found.append((state.name, state.message))
    again, last = "runs again after crash", f"flow run {run.name} has crashed 3 times and is not resumed; see its log"
    assert found == [("Scheduled", f"{again} 1"), ("Scheduled", f"{again} 2"), ("Failed", last)]
