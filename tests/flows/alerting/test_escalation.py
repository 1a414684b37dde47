"""Escalation: who else is told of what was not delivered, and of what nobody takes care of."""

from datetime import timedelta

import pytest

from flows.config.alert_options import AlertSettings, EscalationSettings
from tasks.history.operator_log import Acknowledgement, Silence
from tests.flows.alerting.conftest import START, Box, Nights


@pytest.fixture
def escalating(nights: Nights) -> Nights:
    """Return nights whose incidents are escalated after 36 hours."""
    nights.settings = AlertSettings(escalation=EscalationSettings(webhook="env:NONE", after="36h"))
    return nights


def acknowledge(nights: Nights) -> None:
    ids = [each.incident_id for each in nights.log.open_incidents("support")]
    nights.log.acknowledge(ids, Acknowledgement(START, "ada"))


def test_what_is_open_for_long_is_escalated_once_and_its_end_is_told(escalating: Nights) -> None:
    escalating.run("gate", "short")
    escalating.run("gate")
    assert escalating.on_call.take() == []
    escalating.run("gate", "other")
    (alert,) = escalating.on_call.got
    assert alert.text.endswith("This is escalated: it has been open for more than 36h, and nobody has acknowledged it.")
    assert escalating.on_call.take() == [("opened", "gate")]
    escalating.run("gate", "other")
    assert escalating.on_call.take() == []
    escalating.run()
    assert escalating.on_call.take() == [("resolved", "gate")]


def test_what_somebody_takes_care_of_is_not_escalated_and_its_end_is_told(escalating: Nights) -> None:
    escalating.run("gate")
    acknowledge(escalating)
    escalating.webhook.take()
    escalating.run("gate")
    escalating.run("gate")
    escalating.run("gate")
    assert (escalating.on_call.take(), escalating.webhook.take()) == ([], [])
    escalating.run()
    assert (escalating.on_call.take(), escalating.webhook.take()) == ([], [("resolved", "gate")])


def test_what_is_not_delivered_is_escalated_in_the_same_run(escalating: Nights) -> None:
    escalating.webhook.error = Box.refusal
    escalating.run("gate")
    (alert,) = escalating.on_call.got
    assert alert.remark == (
        "This is escalated: the webhook has not accepted a message since 2026-11-16 06:00: it replied with status 500."
    )
    assert escalating.on_call.take() == [("opened", "gate")]
    escalating.run("gate")
    escalating.run()
    assert escalating.on_call.take() == [("resolved", "gate")]


def test_the_recipient_of_escalations_is_tried_again_too(escalating: Nights) -> None:
    escalating.webhook.error = escalating.on_call.error = Box.refusal
    sent = escalating.run("gate")
    assert [sentence.partition(" has ")[0] for sentence in sent.undelivered] == [
        "the webhook", "the webhook for escalation"
    ]  # fmt: skip
    escalating.webhook.error = escalating.on_call.error = None
    escalating.run("gate")
    assert (escalating.on_call.take(), escalating.webhook.take()) == ([("opened", "gate")], [("opened", "gate")])


def test_nothing_is_escalated_in_a_silence(escalating: Nights) -> None:
    escalating.run("gate")
    escalating.log.silence("support", Silence(START + timedelta(hours=1), START + timedelta(days=3, hours=1)))
    for _ in range(3):
        escalating.run("gate")
    assert escalating.on_call.take() == []
    escalating.run("gate")
    assert escalating.on_call.take() == [("opened", "gate")]
