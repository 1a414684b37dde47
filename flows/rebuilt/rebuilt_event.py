"""The event "an index was rebuilt": its payload, how it is checked, and which of several events is the newest."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.events.filters import EventFilter
from prefect.events.schemas.events import ReceivedEvent

from metric_core.errors import AssayError, ConfigError
from tasks.runs.baselines import INDEX_NAME, checked_index
from tasks.runs.versions import IndexVersion, newest

EVENT = "rag.index.rebuilt"
RESOURCE = "rag.index."
"""What the id of an index's resource begins with."""

FROM_INDEX = "retriever:"
"""The dataset of an event whose contexts are to be fetched from the index, by the retriever of the deployment."""

_VERSION = re.compile(r"[^\s/\\]{1,100}")
_PATIENCE = 20.0
"""Seconds until an event that has started a run can be read: the server writes events in batches."""

_LOOK_BACK = timedelta(hours=1)
_PAGE = 50
"""Events a page; Prefect gives no more."""

_FIELDS = ("index", "version", "dataset")


@dataclass(frozen=True, slots=True)
class IndexRebuilt:
    """An index was rebuilt.

    Args:
        index: its id.
        version: its version, as its builder calls it.
        dataset: where its fresh answers and contexts are: a path, a URL or `hub:owner/name` that a run can read, or
            FROM_INDEX.
        announced: when that was said.
    """

    index: str
    version: str
    dataset: str
    announced: datetime

    @classmethod
    def checked(cls, payload: Mapping[str, Any], announced: datetime) -> "IndexRebuilt":
        """The event that a payload describes.

        Raises:
            ConfigError: a field is missing or can not be used.
        """
        missing = [name for name in _FIELDS if not isinstance(payload.get(name), str) or not payload[name].strip()]
        if missing:
            raise ConfigError(
                f"the event {EVENT} lacks {', '.join(missing)}; it needs index (which), version (of the index) and "
                f"dataset (where the fresh answers and contexts are), all as texts"
            )
        index, version, dataset = (str(payload[name]).strip() for name in _FIELDS)
        if _VERSION.fullmatch(version) is None:
            raise ConfigError(f"a version is up to 100 characters without blanks and slashes, got {version!r}")
        if "://" in dataset and (parts := urlsplit(dataset)) and (parts.password is not None or parts.username):
            raise ConfigError("the dataset's URL must hold no user and no password, which everybody could read")
        return cls(checked_index(index), version, dataset, announced)

    @property
    def place(self) -> IndexVersion:
        """Its place among the versions of the index."""
        return IndexVersion(self.version, self.announced)

    @property
    def payload(self) -> dict[str, str]:
        """What the event carries."""
        return {name: getattr(self, name) for name in _FIELDS}


def newest_announced(event: IndexRebuilt, event_id: UUID | None, quiet: timedelta) -> IndexRebuilt:
    """The newest version among an event, those of its burst before it, and all of its index since.

    Args:
        event: the event that has started a run.
        event_id: its id; None for a run that a person has started.
        quiet: events that follow each other within this time are a burst.

    Raises:
        AssayError: the server does not know the event.
    """
    if event_id is None:
        return event
    found = _readable(event, event_id)
    best = newest(each.place for each in (event, *_burst(found, event, quiet)))
    return next((each for each in found if each.place == best), event)


def newest_beside(index: str, announced: datetime, event_id: UUID, quiet: timedelta) -> IndexRebuilt | None:
    """The newest version in the burst of an event that can not be used itself; None if it stands alone.

    Args:
        index: id of the index.
        announced: when the event was sent.
        event_id: its id.
        quiet: events that follow each other within this time are a burst.
    """
    if INDEX_NAME.fullmatch(index) is None:
        return None
    unusable = IndexRebuilt(index, "", "", announced)
    burst = _burst(_readable(unusable, event_id), unusable, quiet)
    best = newest(each.place for each in burst)
    return next((each for each in burst if each.place == best), None)


def _readable(event: IndexRebuilt, event_id: UUID) -> Sequence[IndexRebuilt]:
    """The events of the index that can be used, once the event itself is among those that the server has written."""
    deadline = time.monotonic() + _PATIENCE
    found = _read(event)
    while event_id not in {each.id for each in found}:
        if time.monotonic() > deadline:
            raise AssayError(f"the Prefect server does not know the event {event_id} that has started this run")
        time.sleep(0.5)
        found = _read(event)
    usable = (_usable(each) for each in found)
    return sorted((each for each in usable if each is not None), key=lambda each: each.announced)


def _read(event: IndexRebuilt) -> Sequence[ReceivedEvent]:
    since, until = event.announced - _LOOK_BACK, datetime.now(UTC) + timedelta(minutes=5)
    wanted = EventFilter.model_validate(
        {
            "event": {"name": [EVENT]},
            "resource": {"id": [f"{RESOURCE}{event.index}"]},
            "occurred": {"since": since, "until": until},
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


def _usable(event: ReceivedEvent) -> IndexRebuilt | None:
    """An event that can not be used starts a run of its own, which says why."""
    try:
        return IndexRebuilt.checked(event.payload, event.occurred)
    except ConfigError:
        return None


def _burst(found: Sequence[IndexRebuilt], event: IndexRebuilt, quiet: timedelta) -> Sequence[IndexRebuilt]:
    earlier = [each for each in found if each.announced <= event.announced]
    burst: list[IndexRebuilt] = [each for each in found if each.announced > event.announced]
    last = event.announced
    for each in reversed(earlier):
        if last - each.announced > quiet:
            break
        burst.append(each)
        last = each.announced
    return burst
