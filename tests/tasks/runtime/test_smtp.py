"""Mail to a real SMTP server on the loopback interface, and the URLs that name servers."""

import smtplib
import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from apprise import Apprise

from metric_core.errors import ConfigError
from tasks.runtime.smtp import SmtpServer, send_mail
from tests.smtp_receiver import SmtpReceiver, write_certificate

SENDER = "assay@example.com"
RECIPIENTS = ("team@example.com", "chef@example.com")


def test_message_arrives_with_subject_and_text() -> None:
    with SmtpReceiver() as mailbox:
        reply = send_mail(
            SmtpServer.from_url(mailbox.url), SENDER, RECIPIENTS, "a\nsubject: é", "two\nlines: ü\n", identity="1"
        )
    (mail,) = mailbox.received
    assert (mail.sender, mail.recipients) == (SENDER, list(RECIPIENTS))
    assert (mail.subject, mail.text.splitlines()) == ("a subject: é", ["two", "lines: ü"])
    assert mail.message["Auto-Submitted"] == "auto-generated"
    assert "accepted the message for team@example.com, chef@example.com" in reply


def test_password_is_sent_only_after_encryption(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = write_certificate(tmp_path / "server.pem")
    with SmtpReceiver(certificate=certificate) as mailbox:
        url = f"smtp://me%40example.com:s%3Acret@localhost:{mailbox.port}"
        server = replace(SmtpServer.from_url(url), security="starttls")  # as for a server on another machine
        with pytest.raises(ssl.SSLCertVerificationError):
            send_mail(server, SENDER, RECIPIENTS, "untrusted", "text", identity="1")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        send_mail(server, SENDER, RECIPIENTS, "trusted", "text", identity="1")
    assert [mail.subject for mail in mailbox.received] == ["trusted"]
    assert mailbox.logins == [(b"me@example.com", b"s:cret")]


def test_server_without_encryption_gets_no_password() -> None:
    with SmtpReceiver() as mailbox:
        server = replace(SmtpServer.from_url(f"smtp://me:secret@127.0.0.1:{mailbox.port}"), security="starttls")
        with pytest.raises(smtplib.SMTPNotSupportedError):
            send_mail(server, SENDER, RECIPIENTS, "subject", "text", identity="1")
    assert mailbox.received == []


def test_refused_recipient_is_named() -> None:
    told = r"refused the recipients chef@example\.com; the others have it"
    with SmtpReceiver(refused="chef@example.com") as mailbox, pytest.raises(RuntimeError, match=told):
        send_mail(SmtpServer.from_url(mailbox.url), SENDER, RECIPIENTS, "subject", "text", identity="1")
    assert mailbox.received[0].recipients == ["team@example.com"]


@pytest.mark.parametrize(
    ("url", "host", "port", "security"),
    [
        ("smtp://mail.example", "mail.example", 587, "starttls"),
        ("smtps://mail.example", "mail.example", 465, "ssl"),
        ("smtp://relay.example:2525?tls=none", "relay.example", 2525, "insecure"),
        ("smtp://[::1]", "::1", 25, "insecure"),
        ("smtp://localhost:1025", "localhost", 1025, "insecure"),
    ],
)
def test_url_says_how_to_connect_and_apprise_does_the_same(url: str, host: str, port: int, security: str) -> None:
    server = SmtpServer.from_url(url)
    assert (server.host, server.port, server.security) == (host, port, security)
    client = Apprise()
    assert client.add(server.apprise_url(SENDER, RECIPIENTS))
    sending: Any = client[0]
    assert (sending.smtp_host, sending.port, sending.secure_mode) == (host, port, security)
    assert [address for _, address in sending.targets] == list(RECIPIENTS)
    assert sending.from_addr[1] == SENDER


def test_other_urls_are_refused_without_repeating_them() -> None:
    cases: list[tuple[str, str]] = [
        ("mail.example:587", "must be smtp://USER:PASSWORD@HOST:587"),
        ("https://me:hunter2@mail.example", "must be smtp://"),
        ("smtp://me:hunter2@mail.example:port", "is not valid"),
        ("smtp://me:hunter2@", "must be smtp://"),
        ("smtp://me:hunter2@mail.example/inbox", "must be smtp://"),
        ("smtps://me:hunter2@mail.example?tls=none", "options after"),
        ("smtp://me:hunter2@mail.example?tls=maybe", "options after"),
    ]
    for url, message in cases:
        with pytest.raises(ConfigError, match=message) as refused:
            SmtpServer.from_url(url)
        assert "hunter2" not in str(refused.value), (url, message)
