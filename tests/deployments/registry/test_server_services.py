"""Messages of the Prefect server to services with incidents, checked against the schemas of these."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from prefect.blocks.core import Block
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.events.actions import CallWebhook, SendNotification
from prefect.server.utilities.user_templates import render_user_template_sync

from deployments.registry.server_services import AlertmanagerService, PagerDutyService
from deployments.registry.watch import Recipients, watch_automations
from flows.alerting.recipients import AlertmanagerRecipient, PagerDutyRecipient, recipients_of
from flows.config.alert_options import AlertSettings
from tests.deployments.registry.test_watch import RUN, make_watched
from tests.service_receivers import AlertmanagerReceiver, PagerDutyReceiver

ROUTING_KEY = "0123456789abcdef0123456789ABCDEF"
SETTINGS = {
    "pagerduty": {"routing_key": "env:PAGERDUTY"},
    "alertmanager": {"url": "http://alertmanager:9093", "authorization": "env:ALERTMANAGER", "keep_days": 2},
}
OPENER, ENDER, BLOCK = UUID(int=1), UUID(int=2), UUID(int=3)
SERVICES = Recipients(services=(PagerDutyService(OPENER, ENDER), AlertmanagerService(BLOCK, timedelta(2))))
SENT_AT = datetime(2026, 11, 22, 6, 15, tzinfo=UTC)
KINDS = ("late", "missing", "stuck", "failed")


def blocks(evaluation: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Mapping[str, Block]]:
    monkeypatch.setenv("PAGERDUTY", ROUTING_KEY)
    monkeypatch.setenv("ALERTMANAGER", "Bearer token")
    pagerduty, alertmanager = recipients_of(AlertSettings.model_validate(SETTINGS))
    assert isinstance(pagerduty, PagerDutyRecipient)
    assert isinstance(alertmanager, AlertmanagerRecipient)
    return {
        "pagerduty": PagerDutyService.blocks(pagerduty, evaluation),
        "alertmanager": AlertmanagerService.blocks(alertmanager, evaluation),
    }


def render(template: str) -> str:
    resource = SimpleNamespace(id=RUN, name="light-fox")
    context = {"event": SimpleNamespace(resource=resource), "firing": SimpleNamespace(id=OPENER, triggered=SENT_AT)}
    return render_user_template_sync(template, context)


def requests(evaluation: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str, Any]]:
    """Yield the URL and the content of what is sent to PagerDuty and Alertmanager by an automation."""
    made = blocks(evaluation, monkeypatch)
    found = {each.name.rpartition(": ")[2]: each for each in watch_automations("x", make_watched(evaluation), SERVICES)}
    suffix = "-end" if kind.endswith(" over") else ""
    for name, action in zip(made, found[kind].actions, strict=True):
        block: Any = made[name].get(suffix) or made[name][""]
        if isinstance(action, SendNotification):
            assert isinstance(block, CustomWebhookNotificationBlock)
            asked = block._build_request_args(render(action.body), render(action.subject))
            yield name, asked["url"], asked["json"]
        else:
            assert isinstance(action, CallWebhook)
            assert block.headers.get_secret_value()["Content-Type"] == "application/json"
            yield name, block.url.get_secret_value(), json.loads(render(action.payload))


@pytest.mark.parametrize("evaluation", ["support", 'a {{ event.id }} "b" {% for %} {# {{name}} ü/é', "x" * 700])
@pytest.mark.parametrize("kind", KINDS)
def test_services_accept_what_opens_an_incident_and_what_ends_it(
    kind: str, evaluation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = {name: content for name, _, content in requests(evaluation, kind, monkeypatch)}
    ended = {name: (url, content) for name, url, content in requests(evaluation, f"{kind} over", monkeypatch)}
    assert PagerDutyReceiver.errors(opened["pagerduty"]) + PagerDutyReceiver.errors(ended["pagerduty"][1]) == []
    actions = [each["event_action"] for each in (opened["pagerduty"], ended["pagerduty"][1])]
    assert actions == ["trigger", "resolve"]
    assert opened["pagerduty"]["dedup_key"] == ended["pagerduty"][1]["dedup_key"]
    assert opened["pagerduty"]["payload"]["source"] == evaluation
    (firing,), (over,) = opened["alertmanager"], ended["alertmanager"][1]
    assert AlertmanagerReceiver.errors([firing, over]) == []
    assert firing["labels"] == over["labels"]
    assert datetime.fromisoformat(firing["endsAt"]) == SENT_AT + timedelta(days=2)
    assert datetime.fromisoformat(over["endsAt"]) == SENT_AT


def test_late_and_missing_runs_are_the_same_incident(monkeypatch: pytest.MonkeyPatch) -> None:
    late, missing = ([*requests("support", kind, monkeypatch)] for kind in ("late", "missing"))
    assert late[0][2]["dedup_key"] == missing[0][2]["dedup_key"] == "support/missed runs"
    assert late[1][2][0]["labels"] == missing[1][2][0]["labels"]


def test_no_secret_is_in_an_automation(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks("support", monkeypatch)
    found = str([each.model_dump(mode="json") for each in watch_automations("x", make_watched(), SERVICES)])
    assert [secret for secret in (ROUTING_KEY, "Bearer token") if secret in found] == []
