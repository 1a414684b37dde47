"""The automations that report scheduled runs, and the texts that they send."""

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from prefect.events.actions import CallWebhook, SendNotification
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture, SequenceTrigger
from prefect.server.events.schemas.events import ReceivedEvent
from prefect.server.utilities.user_templates import render_user_template_sync

from deployments.registry.recipients import block_name
from deployments.registry.report_events import WATCHED
from deployments.registry.schedules import Gaps, find_gaps
from deployments.registry.watch import Recipients, WatchedDeployment, watch_automations
from tests.flows.alerting.test_alert_schema import alert_errors

RECIPIENTS = Recipients(webhooks=(UUID(int=1),), notifications=(UUID(int=2), UUID(int=3)))
RUN = "prefect.flow-run.01a2043a-e056-7ece-9d69-5900b3fb2205"


def make_watched(evaluation: str = "support", gaps: Gaps | None = None) -> WatchedDeployment:
    return WatchedDeployment(
        id=UUID(int=9),
        name="monitor",
        evaluation=evaluation,
        pool="evaluations",
        gaps=gaps or find_gaps({"cron": "0 6 * * *", "timezone": "UTC"}),
        patience=timedelta(minutes=15),
    )


def automations(deployment: WatchedDeployment, recipients: Recipients = RECIPIENTS) -> dict[str, AutomationCore]:
    found = watch_automations("rag-assay: monitor", deployment, recipients)
    return {each.name.rpartition(": ")[2]: each for each in found}


def render_sent(automation: AutomationCore, state: str, due: datetime | None) -> tuple[dict[str, Any], str, str]:
    """Return the JSON that the webhook gets for an event, and the subject and the text of a notification."""
    event = ReceivedEvent.model_validate(
        {
            "occurred": datetime.now(UTC),
            "event": f"prefect.flow-run.{state}",
            "resource": {
                "prefect.resource.id": RUN,
                "prefect.resource.name": 'light-"fox"',
                "prefect.state-name": state,
                "prefect.state-message": "the data of <a> 'customer'",
            },
            "id": UUID(int=4),
        }
    )
    run = None if due is None else SimpleNamespace(expected_start_time=due)
    firing = SimpleNamespace(id=UUID(int=5), triggered=datetime(2026, 11, 22, 6, 15, tzinfo=UTC))
    context = {"event": event, "flow_run": run, "firing": firing}
    call, note, _ = automation.actions
    assert isinstance(call, CallWebhook)
    assert isinstance(note, SendNotification)
    texts = (render_user_template_sync(each, context) for each in (call.payload, note.subject, note.body))
    payload, subject, body = texts
    return json.loads(payload), subject, body


@pytest.mark.parametrize(
    ("kind", "state", "title", "advice"),
    [
        ("late", "Late", "has not run: the run of 2026-11-22 06:00 UTC has not started", "start --pool evaluations"),
        ("late", "Crashed", "has not run: the run of 2026-11-22 06:00 UTC crashed and was not resumed", "15 minutes"),
        ("missing", "Running", "has not run: no run was due for 24 h 20 min", "is paused or removed"),
        (
            "stuck",
            "Running",
            "has not finished: the run of 2026-11-22 06:00 UTC has been running for 24 h 15 min",
            "prefect flow-run cancel 01a2043a-e056-7ece-9d69-5900b3fb2205",
        ),
        (
            "failed",
            "Failed",
            "could not be finished: the run of 2026-11-22 06:00 UTC failed before it could report",
            "prefect flow-run logs 01a2043a-e056-7ece-9d69-5900b3fb2205",
        ),
    ],
)
def test_message_says_which_run_is_missing_and_what_to_do(kind: str, state: str, title: str, advice: str) -> None:
    alert, subject, body = render_sent(automations(make_watched())[kind], state, datetime(2026, 11, 22, 6, tzinfo=UTC))
    assert subject == alert["title"] == f"evaluation support {title}"
    assert body == alert["text"]
    assert advice in body
    assert alert["worse"] == [body.partition("\n")[2]]
    assert (alert["outcome"], alert["kind"], alert["name"]) == ("missed", kind, "support")
    assert (alert["status"], alert["severity"], alert["time"]) == ("open", "error", "2026-11-22T06:15:00+00:00")
    (incident,) = alert["incidents"]
    key, of_kind = {"stuck": ("stuck", "error"), "failed": ("error: not reported", "error")}.get(
        kind, ("missed runs", "missed")
    )
    assert (incident["key"], incident["kind"], incident["status"]) == (f"support/{key}", of_kind, "open")
    assert alert_errors(alert) == []
    assert alert["flow_run"] == RUN.rpartition(".")[2]
    assert "customer" not in body  # the message of a state may show data


@pytest.mark.parametrize(
    ("kind", "key", "title"),
    [
        ("stuck", "stuck", "evaluation support has finished: the run of 2026-11-22 06:00 UTC has ended"),
        (
            "failed",
            "error: not reported",
            "evaluation support reports again: the run of 2026-11-22 06:00 UTC has ended",
        ),
    ],
)
def test_end_of_what_no_run_can_tell_of_is_a_message_too(kind: str, key: str, title: str) -> None:
    found = automations(make_watched())
    alert, subject, body = render_sent(found[f"{kind} over"], "Passed", datetime(2026, 11, 22, 6, tzinfo=UTC))
    assert subject == body == alert["title"] == alert["text"] == title
    assert (alert["outcome"], alert["status"], alert["severity"], alert["kind"]) == (
        "recovered",
        "resolved",
        "info",
        kind,
    )
    assert ([each["key"] for each in alert["incidents"]], alert["worse"]) == ([f"support/{key}"], [])
    assert alert["recovered"] == [title]
    assert alert_errors(alert) == []
    assert {name for name in found if name.endswith(" over")} == {"stuck over", "failed over"}, "runs tell the others"


def test_message_about_a_run_that_is_gone_names_it() -> None:
    alert, _, _ = render_sent(automations(make_watched())["late"], "Late", None)
    assert alert["title"] == 'evaluation support has not run: the run light-"fox" has not started'


def test_name_of_an_evaluation_is_no_template() -> None:
    name = 'a {{ event.id }} "b" {% for x in range(9) %} \\ ü'
    alert, subject, _ = render_sent(automations(make_watched(name))["late"], "Late", None)
    assert alert["name"] == name
    assert alert["incidents"][0]["key"] == f"{name}/missed runs"
    assert subject == alert["title"] == f'evaluation {name} has not run: the run light-"fox" has not started'


def test_nothing_is_watched_for_nobody() -> None:
    assert automations(make_watched(), Recipients()) == {}


def test_reports_wait_for_a_run_to_start_before_the_next() -> None:
    found = automations(make_watched(gaps=Gaps(timedelta(seconds=1), timedelta(days=3))))
    late, missing, stuck = found["late"].trigger, found["missing"].trigger, found["stuck"].trigger
    assert isinstance(late, SequenceTrigger)
    assert isinstance(missing, EventTrigger)
    assert isinstance(stuck, EventTrigger)
    assert (missing.posture, missing.within) == (Posture.Proactive, timedelta(days=3, minutes=20))
    assert WATCHED in missing.after == missing.expect  # each begins again
    assert missing.for_each  # or it would fire again in every period
    assert stuck.within == timedelta(minutes=15, seconds=10)
    assert [each.name for each in found.values()] == [f"rag-assay: monitor: {kind}" for kind in found]


@pytest.mark.parametrize(
    ("cron", "zone", "shortest", "longest"),
    [
        ("* 9-17 * * 1-5", "UTC", timedelta(minutes=1), timedelta(days=2, hours=15, minutes=1)),  # a weekend
        ("0 0,12 * * *", "Europe/Berlin", timedelta(hours=12), timedelta(hours=13)),  # the night of the clock change
        ("*/20 * * * *", "Asia/Tokyo", timedelta(minutes=20), timedelta(minutes=20)),
        ("0 6 1 * *", "UTC", timedelta(days=28), timedelta(days=31)),
        ("@weekly", "UTC", timedelta(days=7), timedelta(days=7)),
    ],
)
def test_gaps_of_dense_schedules_are_found(cron: str, zone: str, shortest: timedelta, longest: timedelta) -> None:
    assert find_gaps({"cron": cron, "timezone": zone}) == Gaps(shortest, longest)


def test_names_of_blocks_differ_where_those_of_deployments_do() -> None:
    names = {block_name(f"monitor-{each}", "email") for each in ("a-b", "a.b", "a_b", "A-b")}
    assert len(names) == 4
    assert all(name.replace("-", "").isalnum() and name.islower() for name in names)
