"""Send events of indexes as any program can: without the checks of `emit_index_rebuilt`."""

from datetime import datetime
from typing import Any

from prefect.client.orchestration import get_client
from prefect.events.schemas.events import Event

from flows.index_events.index_event import EVENT


def send_raw(resource: str, payload: dict[str, Any], occurred: datetime) -> None:
    """Send an event."""
    event = Event.model_validate(
        {"event": EVENT, "occurred": occurred, "resource": {"prefect.resource.id": resource}, "payload": payload}
    )
    with get_client(sync_client=True) as client:
        client.request("POST", "/events", json=[event.model_dump(mode="json")])
