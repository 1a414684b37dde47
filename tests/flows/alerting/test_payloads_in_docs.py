"""The payloads that docs/alerts.md shows are those that services get."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flows.alerting.alert import Alert, AlertIncident
from flows.alerting.formats import alertmanager_alert, pagerduty_event, service_events

PAGE = Path(__file__).parents[3] / "docs" / "alerts.md"
TIME = datetime(2026, 11, 24, 6, 12, tzinfo=UTC)


def make_alert(change: Any) -> Alert:
    incident = AlertIncident(
        key="support/alarm:faithfulness",
        kind="alarm",
        change=change,
        sentence="faithfulness is worse than the baseline since 2026-11-22",
        since=TIME,
        cause="the system",
    )
    return Alert(
        name="support",
        version="2026-11-24 06:00",
        outcome="recovered" if change == "resolved" else "worse",
        incidents=(incident,),
        baseline="2026-11-17 06:00",
        report="https://reports.example/20261124-060000/comparison.html",
        flow_run="01a2043a-e056-7ece-9d69-5900b3fb2205",
        time=TIME,
    )


def payloads() -> dict[str, Any]:
    (opened,), (over,) = service_events(make_alert("opened")), service_events(make_alert("resolved"))
    return {
        "webhook": make_alert("opened").content,
        "PagerDuty opens": pagerduty_event(opened, "KEY"),
        "PagerDuty ends": pagerduty_event(over, "KEY"),
        "Alertmanager opens": [alertmanager_alert(opened, timedelta(days=35), TIME)],
    }


@pytest.mark.parametrize("name", payloads())
def test_page_shows_what_is_sent(name: str) -> None:
    blocks = re.findall(r"```json\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    sent = payloads()[name]
    assert sent in [json.loads(each) for each in blocks], f"the page must show {json.dumps(sent, indent=2)}"
