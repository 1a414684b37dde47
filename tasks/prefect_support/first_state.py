"""Send the event of a scheduled run's first state, which the Prefect server leaves out.

The events of a run's later states say that they follow it if they come within five minutes. The server then waits for
it for 15 minutes before automations see any of them: for runs that were made less than five minutes before they are
due, as those after a deployment are. With the event it goes on at once.
"""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun
from prefect.events.schemas.events import Event
from prefect.exceptions import PrefectHTTPStatusError

from tasks.prefect_support.patience import wait_for_server

_MOST_AGE = timedelta(minutes=6)
"""Age of a run from which its events do not wait: five minutes, and some for the start of its process."""


def send_first_state(run: FlowRun) -> bool:
    """Send the event of the first state of a run that has started if others wait for it; return whether it was sent."""
    if run.created is None or datetime.now(UTC) - run.created > _MOST_AGE:
        return False
    with get_client(sync_client=True) as client:
        first = min(wait_for_server(lambda: client.read_flow_run_states(run.id)), key=lambda each: each.timestamp)
        event = Event.model_validate(
            {
                "id": first.id,
                "occurred": first.timestamp,
                "event": f"prefect.flow-run.{first.name}",
                "resource": {"prefect.resource.id": f"prefect.flow-run.{run.id}", "prefect.resource.name": run.name},
            }
        )
        with suppress(PrefectHTTPStatusError):  # then its other events are handled late, as without it
            client.request("POST", "/events", json=[event.model_dump(mode="json")])
            return True
    return False
