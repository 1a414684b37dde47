"""Incidents reach the recipients of their kind, each once, and say where to read what to do about them."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from pydantic import ValidationError

from flows.alerting import outbox
from flows.alerting.alert import Alert, AlertIncident
from flows.alerting.formats import alertmanager_alert, pagerduty_event, service_events
from flows.alerting.outbox import Outbox, send_test
from flows.alerting.routing import add_runbooks, part_for
from flows.config.alert_options import AlertSettings
from tests.flows.alerting.conftest import START


def incident(kind: str, change: Any = "opened") -> AlertIncident:
    return AlertIncident(key=f"support/{kind}", kind=kind, change=change, sentence=f"{kind} is wrong", since=START)


def alert_of(*incidents: AlertIncident, **content: Any) -> Alert:
    return Alert(**{"name": "support", "outcome": "failed", "incidents": incidents, "flow_run": "1", **content})


def settings_in(folder: Path, **more: Any) -> AlertSettings:
    routes = [{"kinds": [kind], "file": str(folder / f"{kind}.jsonl")} for kind in ("source", "judge")]
    return AlertSettings.model_validate({"file": str(folder / "all.jsonl"), "routes": routes, **more})


def told_in(path: Path) -> list[list[tuple[str, str]]]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [[(each["change"], each["kind"]) for each in json.loads(line)["incidents"]] for line in lines]


@pytest.mark.parametrize("has_history", [True, False])
def test_each_recipient_gets_the_incidents_of_its_kinds(
    has_history: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "emit_event", Mock())
    settings = settings_in(tmp_path)
    address = str(tmp_path / "history.db") if has_history else str(tmp_path)
    box = Outbox(settings, address, "support")
    assert box.send(alert_of(incident("gate"), incident("source"))).undelivered == ()
    assert box.send(alert_of(incident("judge"), flow_run="2")).undelivered == ()
    over = alert_of(incident("source", "resolved"), incident("gate", "continuing"), flow_run="3", outcome="recovered")
    assert box.send(over).is_received
    found = {name: told_in(tmp_path / f"{name}.jsonl") for name in ("all", "source", "judge")}
    assert found == {
        "all": [[("opened", "gate")]],
        "source": [[("opened", "source")], [("resolved", "source")]],
        "judge": [[("opened", "judge")]],
    }


def test_an_alert_about_no_incident_of_a_route_goes_to_the_others_whole(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    for alert in (alert_of(), alert_of(incident("gate", "continuing")), alert_of(incident("alarm"))):
        assert part_for("file", alert, settings) is alert
        assert part_for("file for judge", alert, settings) is None
    mixed = alert_of(incident("gate"), incident("judge", "continuing"), notes=("a note",))
    part = part_for("file", mixed, settings)
    assert part is not None
    assert ([each.kind for each in part.incidents], part.notes, part.outcome) == (["gate"], ("a note",), "failed")


def test_a_test_message_reaches_every_route(tmp_path: Path) -> None:
    assert [each.channel for each in send_test(settings_in(tmp_path))] == ["file", "file for source", "file for judge"]


def test_a_kind_has_one_route_and_a_route_has_a_recipient() -> None:
    route = {"kinds": ["source"], "webhook": "env:HOOK"}
    with pytest.raises(ValidationError, match="incidents of the kind source have two routes"):
        AlertSettings.model_validate({"routes": [route, route]})
    with pytest.raises(ValidationError, match="a route needs a recipient"):
        AlertSettings.model_validate({"routes": [{"kinds": ["source"]}]})


def test_every_payload_has_the_link_to_the_runbook() -> None:
    settings = AlertSettings(runbook="https://wiki.example/assay#{kind}")
    alert = add_runbooks(alert_of(incident("source"), incident("gate", "resolved")), settings)
    url = "https://wiki.example/assay#source"
    assert [each["runbook"] for each in alert.content["incidents"]] == [url, "https://wiki.example/assay#gate"]
    assert alert.content["links"] == {"Runbook": url}
    assert f"\nRunbook: {url}" in alert.text
    [opened, _] = service_events(alert)
    assert pagerduty_event(opened, "KEY")["links"] == [{"href": url, "text": "Runbook"}]
    assert alertmanager_alert(opened, timedelta(days=1), START)["annotations"]["runbook_url"] == url
    two = add_runbooks(alert_of(incident("source"), incident("gate")), settings)
    assert list(two.links) == ["Runbook, source", "Runbook, gate"]
    one_page = add_runbooks(
        alert_of(incident("source"), incident("gate")), AlertSettings(runbook="https://wiki.example")
    )
    assert one_page.links == {"Runbook": "https://wiki.example"}
