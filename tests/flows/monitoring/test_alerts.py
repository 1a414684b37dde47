"""Texts of alerts, and their links to pages."""

import json
from pathlib import Path

import pytest

from flows.config.deploy_options import AlertSettings
from flows.monitoring.alerts import Alert, link_to

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
    assert link_to(FOLDER, "page.html", AlertSettings(link=link)) == found


def test_alert_about_no_index_names_the_evaluation_and_what_is_over() -> None:
    alert = Alert(
        name="support",
        outcome="worse",
        worse=("faithfulness is worse",),
        recovered=("the judge could not be reached",),
        continuing=("no new rows",),
        baseline="2026-11-17 06:00",
        flow_run="1",
    )
    assert alert.text.splitlines() == [
        "evaluation support is worse than the baseline",
        "- faithfulness is worse",
        "Over:",
        "- the judge could not be reached",
        "Still open:",
        "- no new rows",
        "The baseline stays the run of 2026-11-17 06:00.",
    ]
    assert json.loads(json.dumps(alert.content))["recovered"] == ["the judge could not be reached"]


def test_alert_about_an_index_names_its_version() -> None:
    alert = Alert(name="support", index="handbook", version="7", outcome="failed", baseline="6", flow_run="1")
    assert alert.text == ("index handbook, version 7 was not accepted: the gate failed\nThe baseline stays version 6.")
