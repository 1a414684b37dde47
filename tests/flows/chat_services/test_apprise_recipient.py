"""Alerts reach the services that Apprise knows."""

from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from itertools import count
from typing import Any

import pytest

from flows.alerting.alert import Alert, AlertIncident
from flows.alerting.recipients import Recipient, RecipientError, recipients_of
from flows.config.alert_options import AlertSettings
from metric_core.errors import ConfigError
from tests.json_endpoint import JsonEndpoint

SECRET = "hidden-word"
NUMBERS = count()
START = datetime(2026, 11, 28, 6, tzinfo=UTC)


class Chat(JsonEndpoint):
    """A service that gets JSON; it refuses everything while `is_closed`."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Any] = []
        self.is_closed = False

    def answer(self, content: Any, before: int, request: BaseHTTPRequestHandler) -> tuple[Any, ...]:
        del before
        if self.is_closed:
            return 500, {}
        self.told.append((request.path, content))
        return 200, {}


@pytest.fixture
def chat() -> Iterator[Chat]:
    with Chat() as running:
        yield running


def recipient(monkeypatch: pytest.MonkeyPatch, addresses: str) -> Recipient:
    variable = f"ASSAY_CHAT_{next(NUMBERS)}"  # a plugin is created once per process for the same options
    monkeypatch.setenv(variable, addresses)
    plugin = {"recipient": "apprise", "options": {"address_secret": f"env:{variable}"}}
    (found,) = recipients_of(AlertSettings.model_validate({"plugin": plugin}))
    return found


def alert(change: Any, outcome: Any = "worse") -> Alert:
    incident = AlertIncident(key="support/gate", kind="gate", sentence="faithfulness fell", since=START, change=change)
    return Alert(incidents=(incident,), name="support", outcome=outcome, flow_run="1")


def test_each_address_gets_the_alert_and_its_end(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    host = chat.url.removeprefix("http://").partition("/")[0]
    found = recipient(monkeypatch, f"json://{host}/{SECRET}-1 json://{host}/{SECRET}-2")
    assert found.check() == "apprise"
    assert found.send(alert("opened")) == "2 services accepted it"
    assert found.send(alert("resolved", "recovered")) == "2 services accepted it"
    assert sorted(path for path, _ in chat.told) == [f"/{SECRET}-{number}" for number in (1, 1, 2, 2)]
    assert [content["type"] for _, content in chat.told] == ["failure", "failure", "success", "success"]
    _, content = chat.told[0]
    assert "support" in content["title"]
    assert "faithfulness fell" in content["message"]


def test_a_refusal_is_told_without_the_address(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    found = recipient(monkeypatch, f"json://{chat.url.removeprefix('http://').partition('/')[0]}/{SECRET}")
    chat.is_closed = True
    with pytest.raises(RecipientError, match="apprise raised NotDeliveredError") as refused:
        found.send(alert("opened"))
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("addresses", ["", "nothing", f"json://chat.example nobody://{SECRET}"])
def test_a_wrong_address_is_named_by_its_number(addresses: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = recipient(monkeypatch, addresses)
    with pytest.raises(ConfigError) as wrong:
        found.check()
    assert SECRET not in str(wrong.value)
