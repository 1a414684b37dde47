"""`assay serve` writes a line for each event, run, outcome and report."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from prefect.events.filters import EventFilter
from prefect.events.schemas.events import Event

from deployments.registry.service_log import LATE, EventFollower, describe_event
from flows.alerting.outbox import EVENT as ALERT
from flows.index_events.index_event import EVENT as REBUILT

SERVED = uuid4()


def event(name: str, age: float = 0.0, resource: str = "x", of: UUID = SERVED, **payload: Any) -> Event:
    """Return an event that occurred some seconds ago, about a run of a deployment."""
    return Event.model_validate(
        {
            "event": name,
            "occurred": datetime.now(UTC) - timedelta(seconds=age),
            "resource": {"prefect.resource.id": f"prefect.flow-run.{resource}", "prefect.resource.name": resource},
            "related": [
                {
                    "prefect.resource.id": f"prefect.deployment.{of}",
                    "prefect.resource.role": "deployment",
                    "prefect.resource.name": "monitor",
                }
            ],
            "payload": payload,
        }
    )


def state(kind: str, name: str, message: str | None = None) -> dict[str, Any]:
    return {"validated_state": {"type": kind, "name": name, "message": message}}


@pytest.mark.parametrize(
    ("happened", "line"),
    [
        (
            event(REBUILT, index="handbook", version="2", dataset="new.jsonl"),
            "event    index handbook was rebuilt, version 2",
        ),
        (event(ALERT, title="evaluation x is worse"), "report   evaluation x is worse"),
        (event("prefect.flow-run.Running", **state("RUNNING", "Running")), "started  monitor: x"),
        (event("prefect.flow-run.Pending", **state("PENDING", "Pending")), None),
        (
            event("prefect.flow-run.Worse", **state("COMPLETED", "Worse", "faithfulness is worse\nReport: f.html")),
            "worse    monitor: x: faithfulness is worse Report: f.html",
        ),
        (
            event(
                "prefect.flow-run.Failed",
                **state("FAILED", "Failed", "Flow run encountered an exception: ConfigError: no such file"),
            ),
            "failed   monitor: x: ConfigError: no such file",
        ),
        (event("prefect.flow-run.Crashed", **state("CRASHED", "Crashed")), "crashed  monitor: x"),
        (event("prefect.flow-run.Running", of=uuid4(), **state("RUNNING", "Running")), None),
    ],
)
def test_an_event_is_one_line_or_none(happened: Event, line: str | None) -> None:
    assert describe_event(happened, {f"prefect.deployment.{SERVED}"}) == line


class Server:
    """A server that has events, in pages."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.is_away = False

    def read_events(self, wanted: EventFilter, limit: int) -> Any:
        if self.is_away:
            raise httpx.ConnectError("refused")
        found = [each for each in self.events if each.occurred >= wanted.occurred.since]
        return SimpleNamespace(events=sorted(found, key=lambda each: each.occurred)[:limit])


def test_each_event_is_written_once_also_one_that_arrives_late_and_more_than_a_page() -> None:
    lines: list[str] = []
    follower = EventFollower([SERVED], lines.append)
    server: Any = Server()
    server.events = [event(REBUILT, age=3600, index="before", version="1")]
    follower.write_new(server)
    assert lines == []
    server.events += [event(REBUILT, age=-number / 10, index=f"i{number}", version="1") for number in range(120)]
    follower.write_new(server)
    follower.write_new(server)
    assert [line.split()[4] for line in lines] == [f"i{number}" for number in range(120)]
    server.events.append(event(REBUILT, age=-11, index="late", version="1"))
    server.is_away = True
    follower.write_new(server)
    server.is_away = False
    follower.write_new(server)
    assert [line.split()[4] for line in lines[120:]] == ["late"]


def test_what_is_remembered_of_events_does_not_grow() -> None:
    follower = EventFollower([SERVED], lambda _line: None)
    server: Any = Server()
    for number in range(10):
        server.events = [event(REBUILT, age=-number * LATE.total_seconds(), index=str(number), version="1")]
        follower.write_new(server)
    assert len(follower._written) <= 2
