"""The payload of an index event, in the types that JSON has."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from prefect.server.events.schemas.events import ReceivedEvent
from prefect.utilities.schema_tools.hydration import HydrationContext, hydrate

from deployments.registry.triggers import on_index_rebuilt
from flows.index_events.index_event import ArrivedEvent
from metric_core.errors import ConfigError

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
TRIGGER = on_index_rebuilt("a", "*", 10)


def pass_on(payload: dict[str, Any], resource: str = "rag.index.handbook") -> ArrivedEvent:
    """Return the event that a run gets for a payload, as Prefect makes the parameters of the run."""
    event = ReceivedEvent.model_validate(
        {
            "occurred": NOW,
            "event": "rag.index.rebuilt",
            "resource": {"prefect.resource.id": resource},
            "payload": payload,
            "id": uuid4(),
        }
    )
    context = HydrationContext(
        render_jinja=True, jinja_context={"event": event}, raise_on_error=True, render_workspace_variables=False
    )
    hydrated = hydrate(TRIGGER["parameters"], context)
    assert len(hydrated["version"]) <= 200
    return ArrivedEvent.from_parameter(hydrated["event"])


@pytest.mark.parametrize("version", [7, "7", " 7 "])
def test_whole_number_is_a_version(version: Any) -> None:
    rebuilt = pass_on({"index": "handbook", "version": version, "dataset": "<é>'\"&.csv"}).rebuilt()
    assert (rebuilt.version, rebuilt.dataset) == ("7", "<é>'\"&.csv")


def test_other_version_is_refused_with_a_message() -> None:
    cases: list[tuple[Any, str]] = [
        (1.10, r"got 1\.1; a number with a point is ambiguous"),
        (True, "must be text or a whole number, got True"),
        (None, "lacks version"),
        ("", "lacks version"),
        ([1], r"must be text or a whole number, got \['\[1\]'\]"),
        ({"a": 1}, "must be text or a whole number"),
        (["x" * 1_000_000], "must be text or a whole number"),
        (10**400, "must be text or a whole number"),
        ("x" * 1_000_000, "up to 100 characters, without blanks and slashes, got 'xxx"),
        ("1 2", "up to 100 characters"),
        (float("inf"), "must be text or a whole number"),
    ]
    for version, message in cases:
        event = pass_on({"index": "handbook", "version": version, "dataset": "rows.csv"})
        with pytest.raises(ConfigError, match=message) as refused:
            event.rebuilt()
        assert len(str(refused.value)) < 400, (version, message)


def test_missing_fields_are_named() -> None:
    with pytest.raises(ConfigError, match="lacks index, version, dataset"):
        pass_on({}).rebuilt()


def test_index_of_the_payload_is_that_of_the_resource() -> None:
    event = pass_on({"index": "other", "version": 1, "dataset": "rows.csv"})
    with pytest.raises(ConfigError, match=r"here rag\.index\.other, got 'rag\.index\.handbook'"):
        event.rebuilt()


def test_the_address_of_the_chunks_may_be_announced() -> None:
    payload = {"index": "handbook", "version": 1, "dataset": "rows.csv"}
    assert pass_on(payload).rebuilt().chunks == ""
    rebuilt = pass_on({**payload, "chunks": "chunks.jsonl"}).rebuilt()
    assert (rebuilt.chunks, rebuilt.payload["chunks"]) == ("chunks.jsonl", "chunks.jsonl")
    for address, message in (("https://me:word@host/a", "URL of the chunks must hold no user"), (7, "field chunks")):
        with pytest.raises(ConfigError, match=message):
            pass_on({**payload, "chunks": address}).rebuilt()
