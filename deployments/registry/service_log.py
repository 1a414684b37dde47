"""Follow what happens while `assay serve` runs: a line for each event, run, outcome and report."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from threading import Event as Flag
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.events.filters import EventFilter, EventNameFilter, EventOccurredFilter, EventOrder
from prefect.events.schemas.events import Event
from prefect.types import DateTime
from pydantic import TypeAdapter

from flows.alerting.outbox import EVENT as ALERT
from flows.index_events.index_event import EVENT as REBUILT
from tasks.runtime.threads import start_thread

POLL_SECONDS = 2.0
"""Seconds between two looks at the events of the Prefect server."""

STOP_SECONDS = 10.0
"""Seconds that the last look may take."""

LATE = timedelta(minutes=1)
"""Maximum delay of an event: processes send their events in the background."""

_RUN = "prefect.flow-run."
_ENDS = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")
_EXCEPTION = "Flow run encountered an exception: "  # Prefect begins the message of a failed run with it
_PAGE = 50


@contextmanager
def follow_events(deployments: Collection[UUID], write: Callable[[str], None]) -> Iterator[None]:
    """Write what happens to deployments and indexes until the block ends.

    Args:
        deployments: Ids of the deployments whose runs are described.
        write: Function that writes a line; it is called from another thread.
    """
    is_over = Flag()
    follower = EventFollower(deployments, write)

    def follow() -> None:
        with get_client(sync_client=True) as client:
            while not is_over.wait(POLL_SECONDS):
                follower.write_new(client)
            follower.write_new(client)

    # A thread starts without the context of this one, which holds the address of the server.
    thread = start_thread("events", copy_context().run, follow)
    try:
        yield
    finally:
        is_over.set()
        thread.join(STOP_SECONDS)


class EventFollower:
    """The events of a Prefect server from now on.

    Args:
        deployments: Ids of the deployments whose runs are described.
        write: Function that writes a line.
    """

    def __init__(self, deployments: Collection[UUID], write: Callable[[str], None]) -> None:
        self._write = write
        self._deployments = {f"prefect.deployment.{each}" for each in deployments}
        self._begin = self._last = datetime.now(UTC)
        self._written: dict[UUID, datetime] = {}

    def write_new(self, client: SyncPrefectClient) -> None:
        """Write a line for each event that has arrived since the last call; do nothing while the server is away."""
        since = max(self._begin, self._last - LATE)
        try:
            for event in _read_events(client, since):
                if event.id not in self._written:
                    self._written[event.id] = event.occurred
                    self._last = max(event.occurred, self._last)
                    if (line := describe_event(event, self._deployments)) is not None:
                        self._write(f"{event.occurred.astimezone():%Y-%m-%d %H:%M:%S}  {line}")
        except httpx.HTTPError:
            return  # its outage is logged by the worker
        self._written = {id_: at for id_, at in self._written.items() if at >= self._last - LATE}


def _read_events(client: SyncPrefectClient, since: datetime) -> Iterator[Event]:
    """Yield the events since a time, oldest first; one at the border of two pages comes twice."""
    while True:
        wanted = EventFilter(
            event=EventNameFilter(prefix=[REBUILT, ALERT, _RUN], exclude_prefix=[f"{_RUN}heartbeat"]),
            occurred=EventOccurredFilter(since=TypeAdapter(DateTime).validate_python(since)),
            order=EventOrder.ASC,
        )
        events = client.read_events(wanted, limit=_PAGE).events
        yield from events
        if len(events) < _PAGE or events[-1].occurred <= since:
            return
        since = events[-1].occurred


def describe_event(event: Event, deployments: Collection[str]) -> str | None:
    """Return an event in one line; None if it needs none.

    Args:
        deployments: Resource ids of the deployments whose runs are described.
    """
    if event.event == REBUILT:
        return f"event    index {event.payload.get('index')} was rebuilt, version {event.payload.get('version')}"
    if event.event == ALERT:
        return f"report   {event.payload.get('title')}"
    own = next((each for each in event.related if each.role == "deployment" and each.id in deployments), None)
    state = event.payload.get("validated_state")
    if own is None or not isinstance(state, dict):
        return None
    run = f"{own.name}: {event.resource.name}"
    if state["type"] == "RUNNING":
        return f"started  {run}"
    if state["type"] not in _ENDS:
        return None
    message = " ".join(str(state.get("message") or "").removeprefix(_EXCEPTION).split())
    return f"{state['name'].lower():8} {run}{message and f': {message}'}"
