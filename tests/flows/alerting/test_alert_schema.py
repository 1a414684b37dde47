"""The published schema of alerts, and the alerts that must keep to it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from jsonschema import Draft202012Validator

from flows.alerting.alert import Alert, AlertIncident, Severity, Status, Subject

SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "alert.schema.json").read_text(encoding="utf-8"))
START = datetime(2026, 11, 17, 6, tzinfo=UTC)
OF_FILES, OF_REPORTS = {"sent"}, {"kind"}


def alert_errors(content: Any) -> list[str]:
    """Return what the schema says is wrong with an alert, and the fields that it does not have."""
    validator = Draft202012Validator(SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER)
    errors = [f"{each.json_path}: {each.message}" for each in validator.iter_errors(content)]
    return errors + [f"{name} is not documented" for name in content if name not in SCHEMA["properties"]]


def make_alert(outcome: Any = "worse", **content: Any) -> Alert:
    incidents = tuple(
        AlertIncident(key=f"support/{change}", kind="gate", change=change, sentence=change, since=START)
        for change in ("opened", "continuing", "resolved")
    )
    return Alert(**{"name": "support", "outcome": outcome, "incidents": incidents, "flow_run": "1", **content})


def test_alerts_keep_to_the_schema() -> None:
    for outcome in get_args(Subject):
        full = make_alert(outcome, baseline="6", folder="/runs/1", report="https://reports.example/1", index="handbook")
        for alert in (full, make_alert(outcome, incidents=())):
            assert alert_errors(json.loads(json.dumps(alert.content))) == [], outcome


def test_schema_has_the_fields_and_words_of_alerts() -> None:
    content, properties = make_alert().content, SCHEMA["properties"]
    assert set(content) == set(SCHEMA["required"]) == set(properties) - OF_FILES - OF_REPORTS
    of_incident = properties["incidents"]["items"]
    assert set(content["incidents"][0]) == set(of_incident["required"]) == set(of_incident["properties"])
    assert set(properties["outcome"]["enum"]) == {*get_args(Subject), "missed"}
    assert properties["severity"] == {**properties["severity"], **of_incident["properties"]["severity"]}
    assert set(properties["severity"]["enum"]) == set(get_args(Severity))
    assert set(properties["status"]["enum"]) == set(get_args(Status))
    changes = get_args(AlertIncident.__annotations__["change"])
    assert set(of_incident["properties"]["change"]["enum"]) == set(changes)
