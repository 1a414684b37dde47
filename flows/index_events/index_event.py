"""Validate the event that an index was rebuilt."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from metric_core.errors import ConfigError
from tasks.runs.baselines import check_index_name
from tasks.runs.index_versions import IndexVersion
from tasks.runtime.credentials import refuse_secrets

EVENT = "rag.index.rebuilt"
RESOURCE = "rag.index."
"""Prefix of the resource id of an index."""

FROM_INDEX = "retriever:"
"""The dataset of an event that asks the deployment's retriever to fetch the contexts from the index."""

_VERSION = re.compile(r"[^\s/\\]{1,100}")
_FIELDS = {"index": "its id", "version": "of the index", "dataset": "location of the new responses and contexts"}
CHUNKS = "chunks"
"""Field of the address of the chunks, or of their receipt, which an event may lack."""

_SHOWN = 80
"""Characters of an invalid value that a message repeats."""


@dataclass(frozen=True, slots=True)
class IndexRebuilt:
    """The event that an index was rebuilt.

    Args:
        version: Version, as the builder of the index names it.
        dataset: Its new responses and contexts: a path, a URL or `hub:owner/name` that a run can read, or FROM_INDEX.
        chunks: Address of its chunks, or of their receipt; empty if they are not checked.
    """

    index: str
    version: str
    dataset: str
    announced: datetime
    chunks: str = ""

    @classmethod
    def from_payload(cls, payload: Mapping[str, object], announced: datetime) -> "IndexRebuilt":
        """Return the event that a payload describes.

        Args:
            payload: Payload of an event. A version, or an index, that is a whole number is taken as its text.

        Raises:
            ConfigError: A field is missing or invalid.

        >>> payload = {"index": "handbook", "version": 7, "dataset": "a.csv"}
        >>> IndexRebuilt.from_payload(payload, datetime.now(UTC)).version
        '7'
        """
        missing = [name for name in _FIELDS if payload.get(name) is None or not str(payload[name]).strip()]
        if missing:
            needed = ", ".join(f"{name} ({meaning})" for name, meaning in _FIELDS.items())
            raise ConfigError(f"the event {EVENT} lacks {', '.join(missing)}; it needs {needed}")
        index, version, dataset = (_text(name, payload[name]) for name in _FIELDS)
        if _VERSION.fullmatch(version) is None:
            raise ConfigError(
                f"a version must have up to 100 characters, without blanks and slashes, got {_excerpt(version)}"
            )
        chunks = "" if payload.get(CHUNKS) is None else _text(CHUNKS, payload[CHUNKS])
        _check_address("dataset", dataset)
        _check_address(CHUNKS, chunks)
        return cls(check_index_name(index), version, dataset, announced, chunks)

    @property
    def place(self) -> IndexVersion:
        """The position among the versions of the index."""
        return IndexVersion(self.version, self.announced)

    @property
    def payload(self) -> dict[str, str]:
        """The payload of the event."""
        fields = {name: getattr(self, name) for name in _FIELDS}
        return {**fields, CHUNKS: self.chunks} if self.chunks else fields


@dataclass(frozen=True, slots=True)
class ArrivedEvent:
    """An event as the Prefect server received it, with a payload that may be invalid.

    Args:
        occurred: Time of the event by the clock of its sender.
        received: Time at which the server received it.
        payload: The fields of the payload that matter.
    """

    id: UUID
    resource: str
    occurred: datetime
    received: datetime
    payload: Mapping[str, Any]

    @classmethod
    def from_parameter(cls, parameter: Mapping[str, Any]) -> "ArrivedEvent":
        """Return the event that a trigger passed to a run as a parameter.

        Raises:
            ConfigError: The parameter is not what a trigger passes.
        """
        try:
            occurred, received = (_utc(str(parameter[name])) for name in ("occurred", "received"))
            payload = dict(parameter["payload"])
            return cls(UUID(str(parameter["id"])), str(parameter["resource"]), occurred, received, payload)
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(
                "the parameter event must be what the trigger of the deployment passes: id, resource, occurred, "
                f"received and payload; got {_excerpt(dict(parameter))}. To start a run manually, set index, version "
                "and dataset instead."
            ) from error

    @property
    def parameter(self) -> dict[str, Any]:
        """The event as a parameter of a run."""
        return {
            "id": str(self.id),
            "resource": self.resource,
            "occurred": self.occurred.isoformat(),
            "received": self.received.isoformat(),
            "payload": dict(self.payload),
        }

    @property
    def announced(self) -> datetime:
        """The time of the event; a fast clock of its sender does not make it later than its arrival."""
        return min(self.occurred, self.received)

    def rebuilt(self) -> IndexRebuilt:
        """Return the valid event.

        Raises:
            ConfigError: A field of the payload is missing or invalid, or it names another index than the resource.
        """
        rebuilt = IndexRebuilt.from_payload(self.payload, self.announced)
        if self.resource != f"{RESOURCE}{rebuilt.index}":
            raise ConfigError(
                f"the resource id of the event {EVENT} must be {RESOURCE} with the index of the payload, here "
                f"{RESOURCE}{rebuilt.index}, got {_excerpt(self.resource)}"
            )
        return rebuilt


def _check_address(name: str, address: str) -> None:
    if "://" in address and (parts := urlsplit(address)) and (parts.password is not None or parts.username):
        raise ConfigError(f"the URL of the {name} must hold no user and no password, which everyone could read")
    try:
        refuse_secrets(address)
    except ValueError as error:
        raise ConfigError(f"the {name} cannot be announced, because everyone could read it: {error}") from error


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int) and not isinstance(value, bool) and name not in ("dataset", CHUNKS):
        return str(value)
    hint = "; a number with a point is ambiguous, because 1.10 and 1.1 are equal" if isinstance(value, float) else ""
    wanted = "text" if name in ("dataset", CHUNKS) else "text or a whole number"
    raise ConfigError(f"the field {name} of the event {EVENT} must be {wanted}, got {_excerpt(value)}{hint}")


def _excerpt(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def _utc(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
