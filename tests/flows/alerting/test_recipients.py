"""Recipients of alerts: what arrives, and what is said of a refusal."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from prefect.blocks.notifications import SlackWebhook
from pydantic import SecretStr, ValidationError

from flows.alerting.alert import Alert
from flows.alerting.recipients import RECIPIENTS, RecipientError, recipients_of
from flows.config.alert_options import AlertSettings, RecipientOptions
from metric_core.errors import PluginError
from tasks.options.option import find_secret_references
from tests.json_endpoint import JsonEndpoint
from tests.smtp_receiver import SmtpReceiver

EMAIL = {"server": "env:MAIL", "to": ["team@example.com", "chef@example.com"], "sender": "assay@example.com"}
ALERT = Alert(
    name="support", outcome="worse", notes=("faithfulness fell",), report="https://reports.example/r.html", flow_run="1"
)


def send(settings: dict[str, Any], alert: Alert = ALERT) -> str:
    (recipient,) = recipients_of(AlertSettings.model_validate(settings))
    return recipient.send(alert)


def refusal(settings: dict[str, Any]) -> RecipientError:
    with pytest.raises(RecipientError) as refused:
        send(settings)
    return refused.value


def test_alert_arrives_by_mail(monkeypatch: pytest.MonkeyPatch) -> None:
    with SmtpReceiver() as mailbox:
        monkeypatch.setenv("MAIL", mailbox.url)
        send({"email": EMAIL})
    (mail,) = mailbox.received
    assert (mail.sender, mail.recipients) == ("assay@example.com", ["team@example.com", "chef@example.com"])
    assert mail.subject == "evaluation support is worse than the baseline"
    assert mail.text.splitlines() == ALERT.text.splitlines()


def test_failed_mail_is_told_without_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    with SmtpReceiver() as mailbox:
        port = mailbox.port
    monkeypatch.setenv("MAIL", f"smtp://me:hunter2@127.0.0.1:{port}")
    error = refusal({"email": EMAIL})
    assert str(error).startswith("ConnectionRefusedError")
    assert "hunter2" not in str(error)
    assert not error.is_lasting


@pytest.mark.parametrize("refused", ["chef@example.com", "all"])
def test_mailbox_that_the_server_refuses_is_not_tried_again(refused: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["chef@example.com"] if refused == "all" else EMAIL["to"]
    with SmtpReceiver(refused="chef@example.com") as mailbox:
        monkeypatch.setenv("MAIL", mailbox.url)
        error = refusal({"email": {**EMAIL, "to": names}})
    assert "chef@example.com" in str(error)
    assert error.is_lasting


@pytest.mark.parametrize("address", ["team", "a@b.example, c@d.example", "a@b.example\nBcc: all@b.example", "@", ""])
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(ValidationError, match="must have the form name@host"):
        AlertSettings.model_validate({"email": {**EMAIL, "to": [address]}})


def test_password_in_the_configuration_is_refused() -> None:
    with pytest.raises(ValidationError, match="a secret is given by reference"):
        AlertSettings.model_validate({"email": {**EMAIL, "server": "smtp://me:hunter2@mail.example"}})


@pytest.mark.parametrize(
    ("status", "headers", "is_lasting", "seconds"),
    [
        (400, {}, True, None),
        (404, {}, True, None),
        (302, {"Location": "/login"}, True, None),
        (408, {}, False, None),
        (429, {"Retry-After": "120"}, False, 120),
        (429, {"Retry-After": "soon"}, False, None),
        (503, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, False, 0),
        (500, {}, False, None),
    ],
)
def test_refusal_says_whether_another_try_makes_sense(
    status: int, headers: dict[str, str], is_lasting: bool, seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with JsonEndpoint(lambda _content, _before: (status, {"told": "private"}, headers)) as webhook:
        monkeypatch.setenv("HOOK", webhook.url)
        error = refusal({"webhook": "env:HOOK"})
    assert (str(error), error.is_lasting, error.retry_after) == (
        f"it replied with status {status}",
        is_lasting,
        seconds,
    )


def test_date_after_which_to_try_again_becomes_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    until = format_datetime(datetime.now(UTC) + timedelta(days=2), usegmt=True)
    with JsonEndpoint(lambda _content, _before: (503, {}, {"Retry-After": until})) as webhook:
        monkeypatch.setenv("HOOK", webhook.url)
        error = refusal({"webhook": "env:HOOK"})
    assert error.retry_after is not None
    assert 86400 < error.retry_after <= 2 * 86400


@pytest.mark.parametrize(
    ("url", "is_lasting"),
    [
        ("http://127.0.0.1:9/secret-path", False),
        ("ftp://127.0.0.1/secret-path", True),
        ("http://127.0.0.1:secret-path/", True),
    ],
)
def test_unreachable_webhook_is_told_without_its_url(
    url: str, is_lasting: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK", url)
    error = refusal({"webhook": "env:HOOK"})
    assert error.is_lasting == is_lasting
    assert "secret-path" not in "".join(map(str, (error, error.__cause__)))
    assert error.__suppress_context__


@pytest.fixture
def block(prefect_server: object) -> Iterator[tuple[dict[str, Any], JsonEndpoint, list[int]]]:
    """A notification block, the endpoint that it posts to, and the status that the endpoint replies with."""
    del prefect_server
    status = [200]
    with JsonEndpoint(lambda _content, _before: (status[0], {})) as chat:
        url = chat.url.replace("http://", "json://") + "/secret-path"
        SlackWebhook(url=SecretStr(url)).save("chat", overwrite=True)
        yield {"block": "slack-webhook/chat"}, chat, status


@pytest.mark.prefect
def test_block_that_could_not_send_says_so(block: tuple[dict[str, Any], JsonEndpoint, list[int]]) -> None:
    settings, chat, status = block
    assert send(settings) == "slack-webhook/chat accepted the message"
    assert chat.received[0]["title"] == ALERT.title
    for status[0], is_lasting in ((403, True), (503, False)):
        error = refusal(settings)
        assert (str(error), error.is_lasting) == (f"it replied with status {status[0]}", is_lasting)


class Chat:
    """A user-defined recipient."""

    def __init__(self, room: str, token: str) -> None:
        self.room, self.token = room, token

    def send(self, alert: Mapping[str, Any]) -> str:
        if self.room == "closed":
            raise ConnectionError(f"no entry with {self.token}")
        return f"{self.token} says in {self.room}: {alert['title']}"


def test_a_plugin_gets_the_alert_and_its_errors_hold_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAT", "hunter2")
    name = f"{__name__}:Chat"
    settings = {"plugin": {"recipient": name, "options": {"room": "rag", "token": "env:CHAT"}}}
    assert send(settings) == f"hunter2 says in rag: {ALERT.title}"
    assert find_secret_references(AlertSettings.model_validate(settings)) == ("env:CHAT",)
    error = refusal({"plugin": {"recipient": name, "options": {"room": "closed", "token": "env:CHAT"}}})
    assert (str(error), error.is_lasting) == (f"{name} raised ConnectionError", False)
    (recipient,) = recipients_of(AlertSettings.model_validate({"plugin": {"recipient": f"{__name__}:ALERT"}}))
    with pytest.raises(PluginError, match="lacks send"):
        recipient.check()


def test_every_recipient_is_declared_by_an_option_of_its_name() -> None:
    assert set(RECIPIENTS) == set(RecipientOptions.model_fields)
    settings = AlertSettings.model_validate({"webhook": "env:HOOK", "email": EMAIL})
    assert find_secret_references(settings) == ("env:HOOK", "env:MAIL")
