"""Messages are kept per recipient until they are accepted: retries, order, limits, and a history that is missing."""

import json
import sqlite3
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from threading import Event
from unittest.mock import Mock

import pytest

from flows.alerting import delivery, delivery_round, outbox
from flows.alerting.alert import Alert
from flows.alerting.outbox import Outbox
from flows.alerting.recipients import RecipientError
from flows.config.alert_options import AlertSettings
from tasks.history.alert_log import AlertLog
from tasks.history.incident import OPENER, IncidentChanges, IncidentFinding
from tasks.runtime import smtp
from tests.flows.alerting.conftest import START, Box, Nights
from tests.json_endpoint import JsonEndpoint
from tests.smtp_receiver import SmtpReceiver


def titles_in_file(folder: Path) -> list[str]:
    """Return the titles in the file of alerts that no recipient accepted."""
    path = folder / "alerts.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line)["title"] for line in lines]


def test_a_recipient_that_refused_gets_both_messages_in_order_once_it_works(nights: Nights) -> None:
    nights.webhook.error = Box.refusal
    sent = nights.run("gate")
    assert sent.undelivered == (
        "the webhook has not accepted a message since 2026-11-16 06:00: it replied with status 500",
    )
    sent = nights.run()
    assert sent.undelivered == (
        "the webhook has not accepted 2 messages since 2026-11-16 06:00: it replied with status 500",
    )
    assert [each.count for each in nights.log.find_undelivered("support")] == [2]
    assert nights.email.take() == [("opened", "gate"), ("resolved", "gate")]
    assert nights.webhook.take() == []
    nights.webhook.error = None
    assert nights.run().undelivered == ()
    first, second = nights.webhook.got
    assert first.text.endswith("\nThis message could not be delivered since 2026-11-16 06:00.")
    assert first.content["id"] != second.content["id"]
    assert nights.webhook.take() == [("opened", "gate"), ("resolved", "gate")]
    nights.run()
    assert (nights.webhook.take(), nights.email.take()) == ([], [])


def test_a_webhook_that_was_down_gets_what_it_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "emit_event", Mock())
    is_down = True
    with JsonEndpoint(lambda _content, _before: (500 if is_down else 204, b"")) as webhook:
        monkeypatch.setenv("HOOK", webhook.url)
        settings = AlertSettings(webhook="env:HOOK", file=str(tmp_path / "told.jsonl"))
        box = Outbox(settings, str(tmp_path / "history.db"), "support")
        for run in ("1", "2"):
            webhook.received.clear()
            box.send(Alert(name="support", outcome="attention", notes=(f"note of {run}",), flow_run=run))
            is_down = False
    assert [each["worse"] for each in webhook.received] == [["note of 1"], ["note of 2"]]
    told = (tmp_path / "told.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["worse"] for line in told] == [["note of 1"], ["note of 2"]]


def test_a_recipient_is_tried_again_in_the_run(nights: Nights) -> None:
    def work_from_the_third_try_on(_alert: object) -> None:
        nights.webhook.error = Box.refusal if nights.webhook.tried < 3 else None

    nights.webhook.before = work_from_the_third_try_on
    assert nights.run("gate").undelivered == ()
    assert (nights.webhook.tried, nights.email.tried) == (3, 1)


def test_a_lasting_refusal_is_tried_once_per_run_and_holds_back_only_its_own_end(nights: Nights) -> None:
    refused = RecipientError("it replied with status 400", is_lasting=True)
    nights.webhook.error = refused
    nights.run("gate")

    def refuse_the_gate(alert: Alert) -> None:
        is_of_gate = any(each.key == "support/gate" for each in alert.incidents)
        nights.webhook.error = refused if is_of_gate else None

    nights.webhook.before = refuse_the_gate
    nights.run("gate", "alarm")
    assert nights.webhook.tried == 3
    assert nights.webhook.take() == [("opened", "alarm")]
    nights.run("alarm")
    assert nights.webhook.take() == []
    nights.webhook.before, nights.webhook.error = (lambda _alert: None), None
    nights.run("alarm")
    assert nights.webhook.take() == [("opened", "gate"), ("resolved", "gate")]


def test_the_wait_that_a_recipient_asks_for_is_honoured_within_the_time_of_a_run(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    nights.webhook.error = RecipientError("it replied with status 429", retry_after=7)
    nights.run("gate")
    assert pauses == [7.0] * (delivery.TRIES - 1)
    nights.webhook.error = RecipientError("it replied with status 429", retry_after=3600)
    nights.run("gate")
    assert len(pauses) == delivery.TRIES - 1
    assert nights.webhook.tried == delivery.TRIES + 1


def test_mail_that_is_confirmed_late_is_waited_for_and_a_copy_has_the_same_message_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "TRIES", 1)
    email = {"server": "env:MAIL", "to": ["a@b.example"], "sender": "c@d.example"}
    settings = AlertSettings.model_validate({"email": email})
    alert = Alert(name="support", outcome="error", notes=("no file",), flow_run="1")
    with SmtpReceiver(confirms_after=1.0) as mailbox:
        monkeypatch.setenv("MAIL", mailbox.url)
        box = Outbox(settings, str(tmp_path / "history.db"), "support")
        monkeypatch.setattr(smtp, "CONFIRMATION_SECONDS", 0.2)
        (sentence,) = box.send(alert).undelivered
        assert sentence.endswith("timed out")
        monkeypatch.setattr(smtp, "CONFIRMATION_SECONDS", 60.0)
        monkeypatch.setattr(delivery, "RUN_SECONDS", 0.5)
        while box.resend().undelivered:  # on a busy machine the time of a run may be over before it sends anything
            assert len(mailbox.received) == 1, "what is sent is waited for"
        assert box.resend().undelivered == ()
    first, second = mailbox.received
    assert first.message["Message-ID"] == second.message["Message-ID"]
    assert str(first.message["Message-ID"]).startswith(f"<{alert.id}.")


def test_a_recipient_that_hangs_delays_no_other(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "RUN_SECONDS", 1.0)
    released, arrived = Event(), Event()
    nights.webhook.before = lambda _alert: released.wait()
    nights.email.after = lambda _alert: arrived.set()
    sent = nights.run("gate")
    assert arrived.is_set()
    assert sent.undelivered == ("the webhook has not accepted a message since 2026-11-16 06:00: no reply",)
    released.set()


def test_a_run_that_is_resumed_sends_its_alert_once(nights: Nights, tmp_path: Path) -> None:
    nights.run("gate")
    nights.log.close_incident("support", "gate")  # the run died before it wrote its incidents
    nights.finish("gate")
    assert (nights.webhook.take(), nights.email.take()) == ([("opened", "gate")], [("opened", "gate")])
    assert len(nights.events) == 1
    assert titles_in_file(tmp_path) == []


def test_what_no_recipient_accepts_is_in_the_file_once_too(nights: Nights, tmp_path: Path) -> None:
    nights.webhook.error = nights.email.error = OSError("no route")
    assert nights.run("gate").is_received
    nights.run("gate")
    assert titles_in_file(tmp_path) == ["evaluation support has failed its gate"]


def test_a_recipient_that_is_removed_gets_nothing_and_a_new_one_learns_what_is_open(
    nights: Nights, caplog: pytest.LogCaptureFixture
) -> None:
    nights.webhook.error = Box.refusal
    nights.run("gate", "alarm")
    nights.run("alarm")
    nights.boxes = [nights.email, Box("file")]
    nights.run("alarm")
    assert "a message of 2026-11-16 06:00 is not sent: the webhook is not in deploy.alerts any more" in caplog.text
    assert nights.boxes[1].take() == [("opened", "alarm")]
    nights.run("alarm")
    assert nights.boxes[1].take() == []
    nights.webhook.error = None
    nights.boxes = [nights.email, nights.webhook]
    nights.run("alarm")
    assert nights.webhook.take() == [("opened", "alarm")]
    assert nights.email.take() == [("opened", "alarm"), ("opened", "gate"), ("resolved", "gate")]


def test_what_the_only_recipient_did_not_accept_goes_to_the_one_in_its_place(nights: Nights) -> None:
    nights.boxes = [nights.webhook]
    nights.webhook.error = Box.refusal
    nights.run("gate")
    nights.boxes = [nights.email]
    nights.run("gate")
    assert nights.email.take() == [("opened", "gate")]


def test_a_message_is_given_up_after_two_weeks_and_that_is_told(nights: Nights, tmp_path: Path) -> None:
    nights.webhook.error = Box.refusal
    nights.run("gate")
    for _ in range(14):
        assert "given up" not in str(nights.run("gate").undelivered)
    tries = 15 * delivery.TRIES + delivery.TRIES
    assert nights.run("gate").undelivered[-1] == (
        f"the message of 2026-11-16 06:00 to the webhook is given up after {tries} tries: it replied with status 500"
    )
    assert titles_in_file(tmp_path) == ["evaluation support has failed its gate"]
    assert nights.run("gate").undelivered == ()


def test_only_so_many_messages_wait_for_a_recipient(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_round, "WAITING_MESSAGES", 1)
    nights.webhook.error = RecipientError("it replied with status 400", is_lasting=True)
    nights.run("gate")
    assert "of 2026-11-16 06:00 to the webhook is given up" in nights.run("gate", "alarm").undelivered[-1]
    nights.webhook.error = None
    nights.run("gate", "alarm")
    assert nights.webhook.take() == [("opened", "alarm")]


def test_of_two_runs_that_find_the_same_at_once_one_tells_of_it(nights: Nights) -> None:
    def change(run: str, opened: set[str], resolved: set[str]) -> None:
        nights.number = int(run)
        details = {OPENER: run}
        changes = IncidentChanges(
            tuple(IncidentFinding(key, "gate", f"{key} is wrong", nights.now, details=details) for key in opened),
            closed=tuple(resolved),
            flow_run=run,
        )
        Outbox(nights.settings, nights.history, "support").send(nights.alert(opened, resolved), changes)

    change("1", {"gate"}, set())
    change("2", {"gate", "alarm"}, set())
    change("1", {"gate"}, set())  # it is resumed
    assert nights.webhook.take() == [("opened", "gate"), ("opened", "alarm")]
    assert {each.key for each in nights.log.open_incidents("support")} == {"alarm", "gate"}
    change("3", set(), {"gate"})
    change("4", set(), {"gate"})
    assert nights.webhook.take() == [("resolved", "gate")]
    assert len(nights.events) == 3


def test_without_a_history_alerts_are_sent_at_once(nights: Nights, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    box = Outbox(nights.settings, str(tmp_path / "folder"), "support")
    nights.webhook.error = Box.refusal
    sent = box.send(nights.alert({"gate"}, set()))
    assert (sent.is_received, sent.undelivered) == (
        True,
        ("the alert could not be sent to the webhook: it replied with status 500",),
    )
    assert (nights.webhook.tried, nights.email.take()) == (delivery.TRIES, [("opened", "gate")])
    assert titles_in_file(tmp_path) == []
    nights.email.error = Box.refusal
    assert not box.send(nights.alert({"gate"}, set())).is_received
    assert titles_in_file(tmp_path) == ["evaluation support has failed its gate"]


def test_a_message_of_a_later_release_stops_no_alert(nights: Nights) -> None:
    nights.log.put("support", [("webhook", "1", {"outcome": "of a later release"})], "waiting", START)
    assert nights.run("gate").undelivered == ()
    assert (nights.webhook.take(), nights.email.take()) == ([("opened", "gate")], [("opened", "gate")])


@pytest.mark.parametrize("nights", ["sqlite"], indirect=True)
def test_a_history_of_an_earlier_release_gets_the_tables_it_lacks(nights: Nights) -> None:
    nights.run()
    with closing(sqlite3.connect(nights.history)) as connection:
        for table in ("messages", "silences", "acknowledgements"):
            connection.execute(f"DROP TABLE assay_history_{table}")
    nights.log = AlertLog(nights.history)
    nights.webhook.error = Box.refusal
    assert len(nights.run("gate").undelivered) == 1
    assert [each.state for each in nights.log.messages("support", ["webhook"])] == ["waiting"]


def test_a_message_whose_sender_died_is_sent_after_a_while(nights: Nights) -> None:
    nights.webhook.error = Box.refusal
    nights.run("gate")
    assert nights.log.claim("support", "webhook", "dead", 0.5) is not None
    assert nights.log.claim("support", "webhook", "other", 60) is None
    nights.webhook.error = None
    nights.run("gate")
    assert nights.webhook.take() == [("opened", "gate")]


def test_recipients_that_forget_are_told_each_night_what_is_open(nights: Nights) -> None:
    nights.webhook.renews = True
    nights.run("gate")
    nights.run("gate")
    nights.run("gate")
    nights.run()
    nights.run()
    assert nights.webhook.take() == [
        ("opened", "gate"), ("continuing", "gate"), ("continuing", "gate"), ("resolved", "gate")
    ]  # fmt: skip
    assert nights.email.take() == [("opened", "gate"), ("resolved", "gate")]


def test_an_alert_about_no_incident_is_delivered_late_too(nights: Nights) -> None:
    nights.webhook.error = Box.refusal
    Outbox(nights.settings, nights.history, "support").send(nights.alert(set(), set()))
    nights.webhook.error = None
    nights.now = START + timedelta(hours=1)
    Outbox(nights.settings, nights.history, "support").resend()
    assert len(nights.webhook.got) == 1


def test_addresses_of_which_a_server_refuses_one_are_separate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    email = {"server": "env:MAIL", "to": ["team@example.com", "gone@example.com"], "sender": "assay@example.com"}
    settings = AlertSettings.model_validate({"email": email})
    with SmtpReceiver(refused="gone@example.com") as mailbox:
        monkeypatch.setenv("MAIL", mailbox.url)
        box = Outbox(settings, str(tmp_path / "history.db"), "support")
        alert = Alert(name="support", outcome="error", notes=("no file",), flow_run="1")
        (sentence,) = box.send(alert).undelivered
        assert sentence.startswith("the email to gone@example.com has not accepted")
        assert box.resend().undelivered != ()
        mailbox.refused = ""
        assert box.resend().undelivered == ()
    assert [mail.recipients for mail in mailbox.received] == [["team@example.com"], ["gone@example.com"]]
