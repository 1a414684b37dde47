"""Alerts by e-mail."""

import pytest
from pydantic import ValidationError

from flows.alerting.alert import Alert
from flows.alerting.recipients import recipients_of
from flows.config.alert_options import AlertSettings
from tests.smtp_receiver import SmtpReceiver

EMAIL = {"server": "env:MAIL", "to": ["team@example.com", "chef@example.com"], "sender": "assay@example.com"}
ALERT = Alert(
    name="support", outcome="worse", notes=("faithfulness fell",), report="https://reports.example/r.html", flow_run="1"
)


def test_alert_arrives_by_mail(monkeypatch: pytest.MonkeyPatch) -> None:
    with SmtpReceiver() as mailbox:
        monkeypatch.setenv("MAIL", mailbox.url)
        (recipient,) = recipients_of(AlertSettings.model_validate({"email": EMAIL}))
        recipient.send(ALERT)
    (mail,) = mailbox.received
    assert (mail.sender, mail.recipients) == ("assay@example.com", ["team@example.com", "chef@example.com"])
    assert mail.subject == "evaluation support is worse than the baseline"
    assert mail.text.splitlines() == ALERT.text.splitlines()


def test_failed_mail_is_told_without_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    with SmtpReceiver() as mailbox:
        port = mailbox.port
    monkeypatch.setenv("MAIL", f"smtp://me:hunter2@127.0.0.1:{port}")
    (recipient,) = recipients_of(AlertSettings.model_validate({"email": EMAIL}))
    with pytest.raises(ConnectionRefusedError) as refused:
        recipient.send(ALERT)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("address", ["team", "a@b.example, c@d.example", "a@b.example\nBcc: all@b.example", "@", ""])
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(ValidationError, match="must have the form name@host"):
        AlertSettings.model_validate({"email": {**EMAIL, "to": [address]}})


def test_password_in_the_configuration_is_refused() -> None:
    with pytest.raises(ValidationError, match="a secret is given by reference"):
        AlertSettings.model_validate({"email": {**EMAIL, "server": "smtp://me:hunter2@mail.example"}})
