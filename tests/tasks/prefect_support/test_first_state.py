"""The event of a scheduled run's first state."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate
from prefect.client.schemas.schedules import IntervalSchedule

from flows.monitor import monitor
from tasks.prefect_support import first_state
from tasks.prefect_support.first_state import send_first_state
from tasks.prefect_support.paging import read_flow_runs
from tests.flows.deployed_flow import DeployedFlow
from tests.waiting import wait_until


@pytest.mark.prefect
def test_event_that_others_wait_for_has_the_id_of_the_first_state(
    prefect_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del prefect_server
    with get_client(sync_client=True) as client:
        deployed = DeployedFlow(client, monitor, {"config": {}})
        soon = IntervalSchedule(interval=timedelta(hours=1), anchor_date=datetime.now(UTC) + timedelta(minutes=2))
        client.create_deployment_schedules(deployed.id, [DeploymentScheduleCreate(schedule=soon, active=True)])
        client.request("POST", "/deployments/{id}/schedule", path_params={"id": deployed.id}, json={"min_runs": 1})
        run = read_flow_runs(client, {}, {"id": {"any_": [deployed.id]}})[0]
        (state,) = client.read_flow_run_states(run.id)
        assert send_first_state(run)

        def find() -> list[Any]:
            wanted = {"filter": {"event": {"name": ["prefect.flow-run.Scheduled"]}, "id": {"id": [str(state.id)]}}}
            found: list[Any] = client.request("POST", "/events/filter", json=wanted).json()["events"]
            return found

        (event,) = wait_until(find)
        assert event["resource"]["prefect.resource.id"] == f"prefect.flow-run.{run.id}"
        monkeypatch.setattr(first_state, "_MOST_AGE", timedelta(0))
        assert not send_first_state(run)
