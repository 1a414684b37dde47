"""What a run evaluates for an index: the newest version among the events that no run has taken up yet.

Events come in bursts, and a burst may never end; and while a run is at work, further events wait. So a run does not
simply evaluate what has started it. It looks for all that waits, and says by an event of its own what it has taken up:
later runs leave that out, and the server knows that nobody waits any more (see `deployments/registry/triggers.py`).
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
"""In whose name a run takes up events that belongs to no deployment."""

_PATIENCE = 20.0
"""Seconds until an event that has started a run can be read: the server writes events in batches."""

_SKEW = timedelta(minutes=5)
"""How far the clock of a machine that announces something may be ahead."""

_PAGE = 50
"""Events a page; Prefect gives no more."""


def claimed_event(name: str) -> str:
    """The event by which the runs of a deployment say what they have taken up.

    Args:
        name: of the deployment: of two that hear of the same index, each has to evaluate it.

    >>> claimed_event("index-rebuilt-handbook")
    'rag.index.taken.index-rebuilt-handbook'
    """
    return f"rag.index.taken.{name}"


def claim_newest(
    index: str, started: datetime, event_id: UUID, quiet: timedelta, back: timedelta
) -> IndexRebuilt | None:
    """The newest version that waits for a run of this deployment; from now on it waits no more.

    Args:
        index: id of the index.
        started: when the event was sent that has started the run.
        event_id: its id.
        quiet: events that follow each other within this time are a burst.
        back: how far back events may still wait.

    Returns:
        The version; None if nothing that can be used waits: another run has taken it up.

    Raises:
        AssayError: the server does not know the event.
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
    """The events that wait for a run: those of the burst that has started it, and all since.

    Args:
        events: the events of an index.
        taken: the ids of those that other runs have taken up.
        started: when the event was sent that has started the run.
        quiet: events that follow each other within this time are a burst.
    """
    since = started
    for sent in sorted((event.announced for event in events.values() if event.announced <= started), reverse=True):
        if since - sent > quiet:
            break
        since = sent
    return {key: event for key, event in events.items() if event.announced >= since and key not in taken}


def _read_events_with(event_id: UUID, index: str, since: datetime) -> Sequence[ReceivedEvent]:
    """The events of an index, once a certain one is among those that the server has written."""
    deadline = time.monotonic() + _PATIENCE
    found = _read(index, since)
    while event_id not in {each.id for each in found}:
        if time.monotonic() > deadline:
            raise AssayError(f"the Prefect server does not know the event {event_id} that has started this run")
        time.sleep(0.5)
        found = _read(index, since)
    return found


def _read(index: str, since: datetime) -> Sequence[ReceivedEvent]:
    wanted = EventFilter.model_validate(
        {
            "event": {"name": [EVENT, _claimed_event()]},
            "resource": {"id": [f"{RESOURCE}{index}"]},
            "occurred": {"since": since, "until": datetime.now(UTC) + _SKEW},
        }
    )
    found: list[ReceivedEvent] = []
    with get_client(sync_client=True) as client:
        page = client.read_events(wanted, limit=_PAGE)
        found += page.events
        while page.next_page is not None:
            page = client.read_events_page(str(page.next_page))
            found += page.events
    return found


def _usable(found: Sequence[ReceivedEvent]) -> dict[UUID, IndexRebuilt]:
    """The events that say what is needed; one that does not starts a run of its own, which says so."""
    usable = {}
    for each in found:
        if each.event == EVENT:
            try:
                usable[each.id] = IndexRebuilt.checked(each.payload, each.occurred)
            except ConfigError:
                continue
    return usable


def _claimed(found: Sequence[ReceivedEvent]) -> frozenset[UUID]:
    """What other runs have taken up; what this run did before it crashed is its own still."""
    others = (each for each in found if each.event != EVENT and each.payload.get("flow_run") != str(flow_run.id))
    return frozenset(UUID(key) for each in others for key in each.payload["events"])


def _claimed_event() -> str:
    return claimed_event(deployment.name or _BY_HAND)
