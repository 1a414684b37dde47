"""Send the events that begin and end the time in which the Prefect server expects to hear of a deployment's runs."""

import time
from collections.abc import Callable
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.events.schemas.events import Event

WATCHED = "rag.deployment.watched"
"""The event that a deployment is watched from now on, or that its runs have been scheduled again."""

AUTOMATIONS_LOADED_SECONDS = 2.0
"""Seconds after which the server has surely loaded automations that were just applied."""


def deployment_event(event: str, deployment: UUID, name: str) -> Event:
    """Return an event about the reports of a deployment."""
    related = {"prefect.resource.role": "deployment", "prefect.resource.id": f"prefect.deployment.{deployment}"}
    resource = {"prefect.resource.id": f"{WATCHED}.{name}"}
    return Event.model_validate({"event": event, "resource": resource, "related": [related]})


def send_events(client: SyncPrefectClient, make_events: Callable[[], list[Event]]) -> None:
    """Send events about deployments whose automations have just been applied.

    The server loads automations a moment after it has stored them, and an automation does not see earlier events: the
    events are sent at once and again after that moment. The second changes nothing where the first was seen.

    Args:
        make_events: Function that returns the events, with new ids each time.
    """
    for pause in (0.0, AUTOMATIONS_LOADED_SECONDS):
        time.sleep(pause)
        client.request("POST", "/events", json=[each.model_dump(mode="json") for each in make_events()])
