"""An outbox whose recipients, time and log belong to the test."""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias
from unittest.mock import Mock

import pytest

from flows.alerting import outbox, routing
from flows.alerting.alert import Alert, AlertIncident, Subject
from flows.alerting.outbox import Outbox, Sent
from flows.alerting.recipients import RecipientError
from flows.config.alert_options import AlertSettings, RecipientOptions
from tasks.history.alert_log import AlertLog
from tasks.history.incident import IncidentFinding
from tests.postgres import new_database, new_schema

Change: TypeAlias = Literal["opened", "resolved"]
START = datetime(2026, 11, 16, 6, tzinfo=UTC)


@dataclass(eq=False)
class Box:
    """A recipient that accepts alerts, or raises an error.

    Args:
        name: Name of the recipient.
        error: Error that it raises; None accepts.
        before: Called with each alert first.
        after: Called with each alert that was accepted.
        renews: True if it must be told of open incidents again and again.
        keeps: True if it must be told of ends of which people are not.
        seconds: Time that it may take to accept a message.
    """

    name: str
    error: Exception | None = None
    before: Callable[[Alert], object] = lambda _alert: None
    after: Callable[[Alert], object] = lambda _alert: None
    renews: bool = False
    keeps: bool = False
    seconds: float = 0.0
    tried: int = 0
    got: list[Alert] = field(default_factory=list)

    refusal: ClassVar[RecipientError] = RecipientError("it replied with status 500")

    def send(self, alert: Alert) -> str:
        self.tried += 1
        self.before(alert)
        if self.error is not None:
            raise copy(self.error)  # the trace of an error keeps the connections of a run open
        self.got.append(alert)
        self.after(alert)
        return "status 204"

    def check(self) -> str:
        return self.name

    def take(self) -> list[tuple[str, str]]:
        """Return what it was told since the last call: change and key of incidents."""
        told: list[tuple[str, str]] = [
            (each.change, each.key.removeprefix("support/")) for alert in self.got for each in alert.incidents
        ]
        self.got.clear()
        return told


class Nights:
    """An evaluation night by night, with the recipients `webhook` and `email`.

    Args:
        history: Address of the history.
        monkeypatch: Fixture that replaces recipients, time and log.
    """

    def __init__(self, history: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.history = history
        self.log = AlertLog(history)
        self.webhook, self.email, self.on_call = Box("webhook"), Box("email"), Box("webhook")
        self.boxes = [self.webhook, self.email]
        self.settings = AlertSettings()
        self.now = START
        self.number = 0
        self.events: list[Mapping[str, Any]] = []

        def boxes_of(options: RecipientOptions) -> tuple[Box, ...]:
            return tuple(self.boxes) if isinstance(options, AlertSettings) else (self.on_call,)

        monkeypatch.setattr(routing, "recipients_of", boxes_of)
        monkeypatch.setattr(outbox, "_now", lambda: self.now)
        monkeypatch.setattr(outbox, "FlowRunContext", Mock())  # events are emitted inside flow runs only
        monkeypatch.setattr(outbox, "emit_event", lambda *_args, payload, **_more: self.events.append(payload))

    def run(self, *found: str) -> Sent:
        """Run a night, a day after the one before.

        Args:
            found: Keys of the incidents that it finds.
        """
        self.now = START + timedelta(days=self.number)
        self.number += 1
        return self.finish(*found)

    def finish(self, *found: str) -> Sent:
        """Tell what the present night found, as a run that is resumed does again."""
        known = {each.key: each for each in self.log.open_incidents("support")}
        alert = self.alert(opened=set(found) - known.keys(), resolved=known.keys() - set(found))
        box = Outbox(self.settings, self.history, "support")
        sent = box.send(alert) if alert.incidents else box.resend()
        for key in found:
            self.log.open_incident("support", IncidentFinding(key, "gate", f"{key} is wrong", self.now))
        for key in known.keys() - set(found):
            self.log.close_incident("support", key, at=self.now)
        return sent

    def alert(self, opened: set[str], resolved: set[str]) -> Alert:
        """Return the alert of the present night."""
        changes: tuple[tuple[Change, set[str]], ...] = (("opened", opened), ("resolved", resolved))
        incidents = [
            AlertIncident(key=f"support/{key}", kind="gate", change=change, sentence=f"{key} is wrong", since=self.now)
            for change, keys in changes
            for key in sorted(keys)
        ]
        outcome: Subject = "failed" if opened else "recovered"
        run = f"run-{self.number}"
        return Alert(name="support", outcome=outcome, incidents=tuple(incidents), flow_run=run, time=self.now)


@pytest.fixture(scope="session")
def postgres_database(postgres_server: Path) -> str:
    """Return the URL of a database that the tests of alerts share."""
    return new_database(postgres_server)


@pytest.fixture(params=["sqlite", "postgresql"])
def nights(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nights:
    """Return nights whose files are in the folder of the test."""
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path))
    if request.param == "sqlite":
        return Nights(str(tmp_path / "history.db"), monkeypatch)
    return Nights(new_schema(request.getfixturevalue("postgres_database")), monkeypatch)
