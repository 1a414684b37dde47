"""Two runs on one PostgreSQL database at the same time: each message is sent by one of them, in order."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flows.alerting.alert import Alert
from flows.alerting.stored_alerts import write_alert
from tasks.history.alert_log import AlertLog
from tests.json_endpoint import JsonEndpoint
from tests.postgres import new_database
from tests.waiting import DEAD_SECONDS

SENDER = """
import sys
from prefect.logging import disable_run_logger
from flows.alerting.outbox import Outbox
from flows.config.alert_options import AlertSettings

print("ready", flush=True)
sys.stdin.readline()
with disable_run_logger():
    sent = Outbox(AlertSettings(webhook="env:HOOK"), sys.argv[1], "support").resend()
print(sent.undelivered, flush=True)
"""
COUNT = 20


@pytest.mark.served
def test_each_message_is_sent_by_one_of_two_processes(
    postgres_server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = new_database(postgres_server)
    alerts = [Alert(name="support", outcome="attention", flow_run=f"{number}") for number in range(COUNT)]
    rows = [("webhook", alert.id, write_alert(alert)) for alert in alerts]
    log = AlertLog(url)
    log.put("support", rows, "waiting", datetime.now(UTC))
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path))
    with JsonEndpoint() as webhook:
        monkeypatch.setenv("HOOK", webhook.url)
        senders = [
            subprocess.Popen(
                [sys.executable, "-c", SENDER, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for _ in range(2)
        ]
        for sender in senders:
            assert sender.stdout is not None
            assert sender.stdout.readline() == "ready\n"
        for sender in senders:
            assert sender.stdin is not None
            sender.stdin.write("go\n")
            sender.stdin.flush()
        found = [sender.communicate(timeout=DEAD_SECONDS)[0] for sender in senders]
    assert found == ["()\n", "()\n"]
    assert [each["flow_run"] for each in webhook.received] == [alert.flow_run for alert in alerts]
    assert {each.state for each in log.messages("support")} == {"sent"}


def test_messages_of_a_recipient_are_claimed_by_one_sender(postgres_server: Path) -> None:
    url = new_database(postgres_server)
    first, second = AlertLog(url), AlertLog(url)
    alerts = [Alert(name="support", outcome="attention", flow_run=f"{number}") for number in range(2)]
    rows = [("webhook", alert.id, write_alert(alert)) for alert in alerts]
    first.put("support", rows[:1], "waiting", datetime.now(UTC))
    assert len(first.claim("support", "webhook", "first", 60) or ()) == 1
    second.put("support", rows[1:], "waiting", datetime.now(UTC))
    assert second.claim("support", "webhook", "second", 60) is None
    assert second.claim("support", "email", "second", 60) == []
    first.let_go("first")
    assert [each.number for each in second.claim("support", "webhook", "second", 60) or ()] == [1, 2]
