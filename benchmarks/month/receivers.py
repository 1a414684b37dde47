"""Receive alerts and heartbeats by HTTP, for several evaluations, with faults that a story sets."""

import json
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.loopback_server import LoopbackServer, QuietHandler
from tests.smtp_receiver import SmtpReceiver

OK = 200


@dataclass(frozen=True, slots=True)
class Message:
    """A message about an evaluation that a recipient has accepted.

    Args:
        evaluation: Name of the evaluation.
        by: Recipient: HTTP, SMTP or escalation.
        time: Time of arrival.
        found: Time at which the run found what it is about.
        title: The message in one line.
        text: The whole message.
        changes: Keys of incidents, each with what became of it; empty for a mail, which is matched by its text.
    """

    evaluation: str
    by: str
    time: datetime
    found: datetime
    title: str
    text: str
    changes: tuple[tuple[str, str], ...] = ()


@dataclass
class Fault:
    """The treatment of messages about an evaluation by the receiver.

    Args:
        status: Status of the reply.
        seconds: Time before the reply.
        headers: Headers of the reply.
    """

    status: int = OK
    seconds: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)


class Hooks(LoopbackServer):
    """Receives alerts at /alerts/NAME, escalations at /escalations/NAME and heartbeats at /beats/NAME."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.beats: dict[str, list[datetime]] = defaultdict(list)
        self.faults: dict[str, Fault] = {}
        hooks = self

        class Handler(QuietHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"] or 0)
                hooks.answer(self, self.rfile.read(length))

            def do_GET(self) -> None:
                hooks.answer(self, b"")

        super().__init__(Handler)

    def url(self, kind: str, evaluation: str) -> str:
        """Return the URL of a recipient."""
        return f"{self.origin}/{kind}/{evaluation}"

    def answer(self, handler: QuietHandler, body: bytes) -> None:
        """Keep a message, unless a fault is set for its evaluation."""
        _, kind, evaluation, *_ = handler.path.split("/")
        if kind == "beats":
            self.beats[evaluation].append(datetime.now(UTC))
            handler.send(OK)
            return
        fault = self.faults.get(evaluation, Fault()) if kind == "alerts" else Fault()
        time.sleep(fault.seconds)
        handler.send(fault.status)  # fails if the client waits no longer: it is not accepted then
        if fault.status == OK:
            by = "HTTP" if kind == "alerts" else "escalation"
            self.messages.append(_read_alert(evaluation, by, json.loads(body)))


def read_mails(mailbox: SmtpReceiver) -> list[Message]:
    """Return the mails about all evaluations; each has a recipient named like its evaluation."""
    return [
        Message(
            mail.recipients[0].partition("@")[0],
            "SMTP",
            *2 * [_time_of(mail.message["Date"])],
            mail.subject,
            mail.text,
        )
        for mail in list(mailbox.received)
    ]


def _time_of(header: Any) -> datetime:
    time_of: datetime = header.datetime
    return time_of.astimezone(UTC)


def _read_alert(evaluation: str, by: str, content: dict[str, Any]) -> Message:
    changes = tuple((str(each["key"]), str(each["change"])) for each in content.get("incidents") or ())
    changes = changes or ((f"{evaluation}/{content['outcome']}", "opened"),)
    found = datetime.fromisoformat(content["time"])
    return Message(evaluation, by, datetime.now(UTC), found, content["title"], content["text"], changes)
