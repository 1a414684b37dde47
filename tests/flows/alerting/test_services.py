"""Incidents at on-call services: requests that the services accept, and which incidents are open in the end."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Self

import pytest

from flows.alerting.alert import Alert, AlertIncident
from flows.alerting.formats import shorten_key
from flows.alerting.recipients import Recipient, RecipientError, recipients_of
from flows.config.alert_options import AlertSettings
from tests.service_receivers import Services, keys_at_services

NOW = datetime.now(UTC).replace(microsecond=0)
START = NOW - timedelta(days=2)


class Told(Services):
    """The services, and the recipients that send to them."""

    def __enter__(self) -> Self:
        super().__enter__()
        found = recipients_of(AlertSettings.model_validate(self.settings))
        self.recipients: dict[str, Recipient] = {each.name: each for each in found}
        return self

    def tell(self, *incidents: AlertIncident, **content: Any) -> dict[str, str]:
        """Send an alert to all, and return the replies."""
        changes: dict[str, Any] = {
            "name": "support",
            "outcome": "worse",
            "flow_run": "1",
            "report": "https://reports.example/run/comparison.html",
        }
        alert = Alert(incidents=incidents, **(changes | content))
        return {name: each.send(alert) for name, each in self.recipients.items()}


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    with Told() as running:
        for name, secret in running.secrets.items():
            monkeypatch.setenv(name, secret)
        yield running


def incident(key: str, change: Any, **content: Any) -> AlertIncident:
    told = {"kind": "gate", "sentence": f"{key} failed", "since": START, **content}
    return AlertIncident(key=f"support/{key}", change=change, **told)


def keys(*names: str) -> dict[str, set[str]]:
    return keys_at_services(*(f"support/{each}" for each in names))


def test_open_incidents_are_those_of_the_story(services: Told) -> None:
    services.tell(incident("a", "opened"))
    assert services.open() == keys("a")
    counts = {name: len(each.received) for name, each in services.receivers.items()}
    services.tell(incident("a", "continuing"))
    assert services.open() == keys("a")
    assert {name: len(each.received) - counts[name] for name, each in services.receivers.items()} == {
        "pagerduty": 0,
        "alertmanager": 1,  # forgets what is not renewed
    }
    b = {"severity": "warning", "kind": "comparison"}
    services.tell(incident("a", "continuing"), incident("b", "opened", **b))
    assert services.open() == keys("a", "b")
    services.tell(incident("b", "continuing", **b), incident("a", "resolved"), outcome="partly recovered")
    assert services.open() == keys("b")
    services.tell(incident("b", "resolved", **b), outcome="recovered")
    assert services.open() == keys()
    services.tell(incident("a", "opened"))
    assert services.open() == keys("a")


def test_incident_is_told_with_severity_cause_and_links(services: Told) -> None:
    services.tell(incident("a", "opened", severity="critical", cause="the judge"), index="handbook", version="7")
    event = services.receivers["pagerduty"].open["support/a"]
    assert (event["payload"]["severity"], event["payload"]["component"]) == ("critical", "the judge")
    assert event["payload"]["summary"] == "support: a failed"
    assert event["payload"]["custom_details"]["since"] == START.isoformat()
    assert event["payload"]["custom_details"]["index"] == "handbook"
    assert event["links"] == [{"href": "https://reports.example/run/comparison.html", "text": "Report"}]
    text = event["payload"]["custom_details"]["text"]
    assert text.splitlines()[0] == "index handbook, version 7 is worse than the baseline"
    firing = services.receivers["alertmanager"].open["support/a"]
    assert firing["labels"] == {
        "alertname": "RagAssay",
        "severity": "critical",
        "evaluation": "support",
        "kind": "gate",
        "incident": "support/a",
    }
    assert firing["annotations"]["cause"] == "the judge"
    assert datetime.fromisoformat(firing["startsAt"]) == START
    assert datetime.fromisoformat(firing["endsAt"]) >= NOW + timedelta(days=35)
    assert firing["generatorURL"] == "https://reports.example/run/comparison.html"


def test_incident_that_is_told_again_stays_open_for_as_long_as_one_that_is_new(services: Told) -> None:
    services.tell(incident("a", "continuing"), time=NOW - timedelta(days=34))
    firing = services.receivers["alertmanager"].open["support/a"]
    assert datetime.fromisoformat(firing["endsAt"]) >= NOW + timedelta(days=35)


def test_long_names_and_texts_are_accepted_and_end_what_they_opened(services: Told) -> None:
    name = "ü" * 600
    long = incident(f"gate:{name}", "opened", sentence="s" * 40_000)
    services.tell(long, report=Path("/runs/1/report.html").as_uri(), name=name)
    services.tell(incident(f"gate:{name}", "resolved"), outcome="recovered", name=name)
    assert services.open() == keys()


def test_keys_that_differ_at_the_end_stay_different_when_shortened() -> None:
    first, second = (shorten_key(f"support/{'m' * 300}{end}", 255) for end in "ab")
    assert first != second


def test_alert_about_no_evaluation_is_an_incident_itself_and_the_same_the_next_time(services: Told) -> None:
    for version in "12":
        reason = f"no deployment listens to version {version}"
        services.tell(name="", index="handbok", version=version, outcome="error", notes=(reason,))
    assert services.open() == keys_at_services("index handbok/error")
    event = services.receivers["pagerduty"].open["index handbok/error"]
    assert event["payload"]["summary"] == "index handbok: no deployment listens to version 2"


def test_further_version_with_a_known_problem_opens_nothing(services: Told) -> None:
    replies = services.tell(index="handbook", version="8", outcome="failed")
    assert services.open() == keys()
    assert set(replies.values()) == {"there is nothing to send: no incident has opened or ended"}


def test_test_message_leaves_nothing_open(services: Told) -> None:
    services.tell(name="", index="test", version="test", outcome="test", flow_run="")
    assert [each["event_action"] for each in services.receivers["pagerduty"].received] == ["trigger", "resolve"]
    assert services.receivers["pagerduty"].received[0]["payload"]["severity"] == "info"
    assert services.open()["pagerduty"] == set()
    (alert,) = services.receivers["alertmanager"].open.values()
    assert datetime.fromisoformat(alert["endsAt"]) <= datetime.now(UTC) + timedelta(minutes=5)


@pytest.mark.parametrize("name", ["pagerduty", "alertmanager"])
def test_busy_service_is_told_all_by_the_next_try(services: Told, name: str) -> None:
    services.receivers[name].busy = 1
    alert = Alert(
        name="support", outcome="worse", flow_run="1", incidents=(incident("a", "opened"), incident("b", "opened"))
    )
    with pytest.raises(RecipientError) as refused:
        services.recipients[name].send(alert)
    assert (refused.value.is_lasting, refused.value.retry_after) == (False, 7)
    services.recipients[name].send(alert)
    assert services.open()[name] == keys("a", "b")[name]


@pytest.mark.parametrize(
    ("name", "variable", "secret"),
    [
        ("pagerduty", "TEST_PAGERDUTY", "another-key-another-key-another-"),
        ("alertmanager", "TEST_ALERTMANAGER", "Bearer another-token"),
    ],
)
def test_refusal_says_what_is_wrong_without_the_secret(
    services: Told, name: str, variable: str, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, secret)
    with pytest.raises(RecipientError) as refused:
        services.recipients[name].send(
            Alert(name="s", outcome="worse", flow_run="", incidents=(incident("a", "opened"),))
        )
    assert refused.value.is_lasting
    assert len(services.receivers[name].refused) == 1
    assert any(word in str(refused.value) for word in ("unknown", "authenticate", "unauthorized"))
    assert secret.rsplit(maxsplit=1)[-1] not in str(refused.value)


def test_incident_that_is_refused_for_good_does_not_stop_the_others(
    services: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = services.receivers["pagerduty"]
    take = receiver.take

    def refuse_one(content: Any, request: BaseHTTPRequestHandler) -> tuple[int, Any]:
        if content["dedup_key"] == "support/a":
            return 400, {"status": "invalid event", "message": "Event object is invalid"}
        return take(content, request)

    monkeypatch.setattr(receiver, "take", refuse_one)
    alert = Alert(
        name="support", outcome="worse", flow_run="1", incidents=(incident("a", "opened"), incident("b", "opened"))
    )
    with pytest.raises(RecipientError, match="status 400"):
        services.recipients["pagerduty"].send(alert)
    assert set(receiver.open) == {"support/b"}


@pytest.mark.parametrize(
    "settings",
    [
        {"pagerduty": {"routing_key": "0123456789abcdef"}},
        {"alertmanager": {"url": "http://a:9093", "authorization": "Bearer t"}},
        {"alertmanager": {"url": "http://me:hunter2@a:9093"}},
        {"alertmanager": {"url": "a:9093"}},
        {"alertmanager": {"url": "http://a:9093", "keep_days": 0}},
    ],
)
def test_secrets_and_other_addresses_are_refused(settings: Mapping[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"secret is given by reference|must hold no|must start with|greater than 0"):
        AlertSettings.model_validate(settings)
