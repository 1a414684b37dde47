"""Choose the version of an index that a run evaluates: the newest among the events that no run has claimed yet.

Events come in bursts that may never end, and more events may wait while a run is in progress. So a run does not simply
evaluate the event that started it: it claims all waiting events, by sending an event that lists them. Later runs ignore
these, and the server stops waiting for a run that covers them (see `deployments/registry/triggers.py`).
"""

import time
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.events import emit_event
from prefect.events.filters import EventFilter
from prefect.events.schemas.events import ReceivedEvent
from prefect.runtime import deployment, flow_run

from flows.index_events.index_event import EVENT, RESOURCE, IndexRebuilt
from metric_core.errors import AssayError, ConfigError
from tasks.runs.baselines import INDEX_NAME
from tasks.runs.index_versions import newest

_BY_HAND = "index-rebuilt"
"""The name under which a run without a deployment claims events."""

_EVENT_TIMEOUT = 20.0
"""Maximum seconds until the event that started a run can be read: the server writes events in batches."""

_SKEW = timedelta(minutes=5)
"""Tolerance for the clock of a machine that sends an event."""

_PAGE = 50
"""Events per page, the maximum of Prefect."""


def claimed_event(name: str) -> str:
    """Return the name of the event by which the runs of a deployment claim other events.

    Args:
        name: Name of the deployment; each deployment that listens to an index evaluates it.

    >>> claimed_event("index-rebuilt-handbook")
    'rag.index.taken.index-rebuilt-handbook'
    """
    return f"rag.index.taken.{name}"


def claim_newest(
    index: str, started: datetime, event_id: UUID, quiet: timedelta, back: timedelta
) -> IndexRebuilt | None:
    """Claim the waiting events of an index for this run and return the newest version among them.

    Args:
        index: Id of the index.
        started: Time of the event that started the run.
        event_id: Id of that event.
        quiet: Maximum time between two events of a burst.
        back: Maximum age of an event that may still wait.

    Returns:
        The version; None if no usable event waits, because another run has claimed it.

    Raises:
        AssayError: The server does not know the event.
    """
    if INDEX_NAME.fullmatch(index) is None:
        return None
    read = _read_events_with(event_id, index, started - back)
    waiting = waiting_events(_usable(read), _claimed(read), started, quiet)
    if not waiting:
        return None
    payload = {"flow_run": str(flow_run.id), "events": list(map(str, waiting))}
    emit_event(_claimed_event(), resource={"prefect.resource.id": f"{RESOURCE}{index}"}, payload=payload)
    best = newest(event.place for event in waiting.values())
    return next(event for event in waiting.values() if event.place == best)


def waiting_events(
    events: Mapping[UUID, IndexRebuilt], taken: Collection[UUID], started: datetime, quiet: timedelta
) -> dict[UUID, IndexRebuilt]:
    """Return the events that wait for a run: those of the burst that started it, and all later ones.

    Args:
        events: The events of an index.
        taken: Ids of the events that other runs have claimed.
        started: Time of the event that started the run.
        quiet: Maximum time between two events of a burst.
    """
    since = started
    for sent in sorted((event.announced for event in events.values() if event.announced <= started), reverse=True):
        if since - sent > quiet:
            break
        since = sent
    return {key: event for key, event in events.items() if event.announced >= since and key not in taken}


def _read_events_with(event_id: UUID, index: str, since: datetime) -> Sequence[ReceivedEvent]:
    """Wait until the server has written an event, and return all events of the index."""
    deadline = time.monotonic() + _EVENT_TIMEOUT
    events = _read(index, since)
    while event_id not in {each.id for each in events}:
        if time.monotonic() > deadline:
            raise AssayError(f"the Prefect server does not know the event {event_id} that started this run")
        time.sleep(0.5)
        events = _read(index, since)
    return events


def _read(index: str, since: datetime) -> Sequence[ReceivedEvent]:
    matching = EventFilter.model_validate(
        {
            "event": {"name": [EVENT, _claimed_event()]},
            "resource": {"id": [f"{RESOURCE}{index}"]},
            "occurred": {"since": since, "until": datetime.now(UTC) + _SKEW},
        }
    )
    events: list[ReceivedEvent] = []
    with get_client(sync_client=True) as client:
        page = client.read_events(matching, limit=_PAGE)
        events += page.events
        while page.next_page is not None:
            page = client.read_events_page(str(page.next_page))
            events += page.events
    return events


def _usable(events: Sequence[ReceivedEvent]) -> dict[UUID, IndexRebuilt]:
    """Return the valid events; an invalid event starts its own run, which reports it."""
    usable = {}
    for each in events:
        if each.event == EVENT:
            try:
                usable[each.id] = IndexRebuilt.from_payload(each.payload, each.occurred)
            except ConfigError:
                continue
    return usable


def _claimed(events: Sequence[ReceivedEvent]) -> frozenset[UUID]:
    """Return the ids of the events that other runs have claimed, without those that this run claimed before a crash."""
    others = (each for each in events if each.event != EVENT and each.payload.get("flow_run") != str(flow_run.id))
    return frozenset(UUID(key) for each in others for key in each.payload["events"])


def _claimed_event() -> str:
    return claimed_event(deployment.name or _BY_HAND)
