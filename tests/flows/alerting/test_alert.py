"""Texts of alerts, and their links to pages."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flows.alerting.alert import Alert, AlertIncident
from flows.config.alert_options import AlertSettings
from flows.monitoring.incidents import alert_incidents, subject_of_alert
from tasks.record.outcome import OutcomeIncident, OutcomeIncidents

START = datetime(2026, 11, 17, 6, tzinfo=UTC)
FOLDER = Path("/runs/räder #1")


@pytest.mark.parametrize(
    ("link", "found"),
    [
        (None, FOLDER.joinpath("page.html").as_uri()),
        ("https://reports.example/{name}/", "https://reports.example/r%C3%A4der%20%231/page.html"),
        ("https://reports.example{folder}", "https://reports.example/runs/r%C3%A4der%20%231/page.html"),
    ],
)
def test_link_works_for_any_folder_name(link: str | None, found: str) -> None:
    assert AlertSettings(link=link).link_to(FOLDER, "page.html") == found


def test_alert_about_no_index_names_the_evaluation_and_what_is_over() -> None:
    alert = Alert(
        name="support",
        outcome="worse",
        incidents=(
            AlertIncident(
                key="support/a", kind="alarm", change="opened", sentence="faithfulness is worse", since=START
            ),
            AlertIncident(
                key="support/b", kind="error", change="resolved", sentence="the judge could not be reached", since=START
            ),
            AlertIncident(key="support/c", kind="source", change="continuing", sentence="no new rows", since=START),
        ),
        baseline="2026-11-17 06:00",
        flow_run="1",
    )
    assert alert.text.splitlines() == [
        "evaluation support is worse than the baseline",
        "- faithfulness is worse",
        "Over:",
        "- the judge could not be reached",
        "Still open:",
        "- no new rows (since 2026-11-17 06:00)",
        "The baseline stays the run of 2026-11-17 06:00.",
    ]
    assert (alert.status, alert.severity) == ("open", "error")
    assert json.loads(json.dumps(alert.content))["recovered"] == ["the judge could not be reached"]


def test_alert_about_an_index_names_its_version() -> None:
    alert = Alert(name="support", index="handbook", version="7", outcome="failed", baseline="6", flow_run="1")
    assert alert.text == ("index handbook, version 7 was not accepted: the gate failed\nThe baseline stays version 6.")


def test_missed_runs_are_over_when_a_run_tells_of_them() -> None:
    missed = OutcomeIncident(key="missed runs", kind="missed", sentence="1 run was missed", since=START)
    file = OutcomeIncident(key="error:no file", kind="error", sentence="no file", since=START)
    found = alert_incidents("support", OutcomeIncidents(opened=(missed, file)))
    assert {each.key: each.change for each in found} == {
        "support/missed runs": "resolved",
        "support/error:no file": "opened",
    }
    assert subject_of_alert(OutcomeIncidents(opened=(missed,))) == "recovered"
    assert subject_of_alert(OutcomeIncidents(opened=(missed,), continuing=(file,))) == "partly recovered"
