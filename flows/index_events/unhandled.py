"""Find events of indexes that no run has taken up, and start their runs.

Prefect makes a run of each event, but it can lose one: its server drops an event after a few attempts to create the
run, which fail while a SQLite database is busy, and it creates none while its trigger service is off. The events
themselves are in the server's store, so every run for an index looks there, too, and starts what was lost.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.responses import DeploymentResponse
from prefect.events.filters import EventFilter, EventNameFilter, EventOccurredFilter, EventResourceFilter
from prefect.events.schemas.events import ReceivedEvent
from prefect.states import Scheduled
from prefect.types import DateTime
from pydantic import TypeAdapter

from flows.index_events.index_event import EVENT, ArrivedEvent
from flows.index_events.listeners import (
    FLOW,
    REFUSAL,
    deployments_of,
    has_worker,
    listening,
    listens_since,
    patterns_of,
)
from metric_core.errors import ConfigError
from tasks.prefect_support.paging import read_flow_runs
from tasks.runs.index_versions import IndexVersion

LOOKBACK = timedelta(days=2)
"""Age of the oldest events that are looked at; Prefect keeps events for a week by default."""

GRACE = timedelta(minutes=5)
"""Age from which on an event without a run counts as lost: until then its run may still be on its way."""

_SHOWN = 200
_CLOCK_ERROR = timedelta(days=3650)
_Taken: TypeAlias = Mapping[UUID | None, Sequence[Any]]
_EVENTS: TypeAdapter[list[ReceivedEvent]] = TypeAdapter(list[ReceivedEvent])


@dataclass(frozen=True, slots=True)
class UnhandledEvent:
    """An event without a run.

    Args:
        flow: Name of the flow that has to handle it: one that evaluates the index, or one that refuses the event.
    """

    flow: str
    deployment: str
    event: ArrivedEvent

    @property
    def words(self) -> str:
        """The event in a few words."""
        version = self.event.payload.get("version", "?")
        return f"version {version} of {self.event.resource}, received {self.event.received:%Y-%m-%d %H:%M:%S} UTC"


def find_unhandled(
    client: SyncPrefectClient, now: datetime, grace: timedelta = GRACE, resource: str | None = None
) -> list[UnhandledEvent]:
    """Return the events without a run, oldest first.

    An event is handled if a run has it as a parameter, or if a run of the same deployment evaluates a version of the
    index that is at least as new. One that no deployment listens to is handled once a run has refused it, and an
    invalid one once any run has taken it up. Events from before a deployment listened to their index are not for it.

    Args:
        grace: Age below which an event is not lost yet.
        resource: Resource whose events are looked at; None for all.
    """
    events = [each for each in _read_events(client, now, resource) if each.received <= now - grace]
    if not events:
        return []
    evaluating = {each.name: each for each in deployments_of(client, FLOW)}
    patterns = patterns_of(evaluating.values())
    heard = {event.id: listening(patterns, event.resource) for event in events}
    taken = _read_taken(client, now)
    found: list[UnhandledEvent] = []
    for name, each in evaluating.items():
        mine = [event for event in events if name in heard[event.id]]
        found += (UnhandledEvent(FLOW, name, event) for event in _find_lost(client, [each], mine, taken))
    unheard = [event for event in events if not heard[event.id]]
    if unheard and (refusing := deployments_of(client, REFUSAL)):
        best = min(refusing, key=lambda each: (not has_worker(client, each), each.name))
        found += (UnhandledEvent(REFUSAL, best.name, event) for event in _find_lost(client, refusing, unheard, taken))
    return sorted(found, key=lambda each: each.event.received)


def _find_lost(
    client: SyncPrefectClient, deployments: Sequence[DeploymentResponse], events: Sequence[ArrivedEvent], taken: _Taken
) -> list[ArrivedEvent]:
    """Return the events that no run of these deployments has taken up, since they listen to them."""
    own = [parameter for each in deployments for parameter in taken.get(each.id, ())]
    everyone = [parameter for parameters in taken.values() for parameter in parameters]
    lost = [
        event
        for event in events
        if not is_handled(event, own) and not (_place(event) is None and is_handled(event, everyone))
    ]
    since = listens_since(client, deployments) if lost else None
    return [event for event in lost if since is not None and event.received >= since]


def start_unhandled(client: SyncPrefectClient, now: datetime) -> list[UnhandledEvent]:
    """Create the runs of events that were lost, and return these events."""
    lost = find_unhandled(client, now)
    for each in lost:
        deployment = client.read_deployment_by_name(f"{each.flow}/{each.deployment}")
        client.create_flow_run_from_deployment(
            deployment.id,
            parameters=_parameters(each.event) if each.flow == FLOW else {"event": each.event.parameter},
            state=Scheduled(),
            idempotency_key=f"lost-event-{each.event.id}",  # two runs may find it at once
        )
    return lost


def _parameters(event: ArrivedEvent) -> dict[str, Any]:
    """Return the parameters that a trigger passes: the fields as text for people, and the event as it was sent."""
    texts = {name: str(event.payload.get(name, ""))[:_SHOWN] for name in ("index", "version", "dataset", "chunks")}
    return {**texts, "announced": event.occurred.isoformat(), "event": event.parameter}


def _read_events(client: SyncPrefectClient, now: datetime, resource: str | None) -> Iterator[ArrivedEvent]:
    """Yield the events that were received lately, oldest first, whenever they occurred by their sender's clock."""
    times = {"since": now - _CLOCK_ERROR, "until": now + _CLOCK_ERROR}
    wanted = EventFilter(
        event=EventNameFilter(name=[EVENT]),
        occurred=EventOccurredFilter(**{name: TypeAdapter(DateTime).validate_python(at) for name, at in times.items()}),
        resource=None if resource is None else EventResourceFilter(id=[resource]),
    )
    content = {"filter": wanted.model_dump(mode="json", exclude_none=True), "limit": 50}
    page = client.request("POST", "/events/filter", json=content).json()
    found: list[ReceivedEvent] = _EVENTS.validate_python(page["events"])
    while page.get("next_page"):
        token = parse_qs(urlsplit(page["next_page"]).query)["page-token"][0]
        page = client.request("GET", "/events/filter/next", params={"page-token": token}).json()
        found += _EVENTS.validate_python(page["events"])
    for event in sorted(found, key=lambda each: each.received):
        if event.received >= now - LOOKBACK:
            yield ArrivedEvent(event.id, event.resource.id, event.occurred, event.received, event.payload)


def _read_taken(client: SyncPrefectClient, now: datetime) -> _Taken:
    """Return the events that runs have as parameters, by deployment: that of a run may be gone."""
    since = {"expected_start_time": {"after_": (now - LOOKBACK - GRACE).isoformat()}}
    taken: dict[UUID | None, list[Any]] = defaultdict(list)
    for run in read_flow_runs(client, since, flow={"name": {"any_": [FLOW, REFUSAL]}}):
        taken[run.deployment_id].append(run.parameters.get("event"))
    return taken


def is_handled(event: ArrivedEvent, parameters: Collection[Any]) -> bool:
    """Return whether a run has taken up an event, or one that is at least as new.

    Args:
        parameters: The events that the runs of a deployment have as parameters.
    """
    others = [other for other in map(_event_of, parameters) if other is not None and other.resource == event.resource]
    if any(other.id == event.id for other in others):
        return True
    place, places = _place(event), [found for found in map(_place, others) if found is not None]
    return place is not None and any(not place.is_newer_than(other) for other in places)


def _event_of(parameter: Any) -> ArrivedEvent | None:
    try:
        return ArrivedEvent.from_parameter(parameter) if isinstance(parameter, dict) else None
    except ConfigError:
        return None


def _place(event: ArrivedEvent) -> IndexVersion | None:
    try:
        return event.rebuilt().place
    except ConfigError:
        return None
