"""Send alerts about evaluations that nobody watches: a version was not accepted, a run failed, or has recovered.

Each recipient is notified separately: one that cannot be reached does not affect the others. Without recipients, or
if none can be reached, the alert is appended to a file.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import quote

import httpx
from prefect.blocks.abstract import NotificationBlock
from prefect.blocks.core import Block
from prefect.events import emit_event
from prefect.logging import get_run_logger

from flows.config.deploy_options import AlertSettings, EmailSettings
from tasks.runtime.atomic_files import append_whole
from tasks.runtime.credentials import read_secret
from tasks.runtime.home import assay_home
from tasks.runtime.smtp import SmtpServer, send_mail

EVENT = "rag.index.alert"
"""The Prefect event that every alert emits, for custom automations."""

_OF_INDEX = {
    "failed": "was not accepted: the gate failed",
    "inconclusive": "was not accepted: the gate is inconclusive",
    "worse": "is worse than the baseline",
    "error": "could not be evaluated",
    "attention": "needs attention",
    "recovered": "has recovered",
}
_OF_EVALUATION = {
    **_OF_INDEX,
    "failed": "has failed its gate",
    "inconclusive": "has an inconclusive gate",
    "error": "could not be finished",
}
_SHOWN = 100
_SECONDS = 15.0
_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An alert about an evaluation, which may be about a version of an index.

    Args:
        name: Name of the evaluation; empty if only the index is known.
        index: Id of the index; empty if the evaluation is about none.
        version: Version that did not become the baseline, or the time at which the run started.
        outcome: Outcome of the gate, "failed" or "inconclusive"; "worse" for an alarm of the sequential tests; "error"
            for a run that could not be finished; "attention" for anything else that is wrong; "recovered" if all that
            was wrong is over; "test" for a message that tests the recipients.
        worse: Sentences on what got worse, or the message of an error.
        recovered: Sentences on what is over.
        continuing: Sentences on what earlier alerts were about and is not over.
        baseline: The version that stays the baseline.
        folder: The run folder; None if there is none.
        report: URL of the report, or of the comparison with the baseline.
        flow_run: Id of the flow run.
    """

    name: str = ""
    index: str = ""
    version: str = ""
    outcome: Literal["failed", "inconclusive", "worse", "error", "attention", "recovered", "test"]
    worse: tuple[str, ...] = ()
    recovered: tuple[str, ...] = ()
    continuing: tuple[str, ...] = ()
    baseline: str | None = None
    folder: str | None = None
    report: str | None = None
    flow_run: str

    @property
    def title(self) -> str:
        """The alert in one line."""
        if self.outcome == "test":
            return "test of the alerts of rag-assay: nothing has happened"
        if self.index:
            return f"index {self.index}, version {self.version} {_OF_INDEX[self.outcome]}"
        return f"evaluation {self.name} {_OF_EVALUATION[self.outcome]}"

    @property
    def text(self) -> str:
        """The alert as plain text."""
        lines = [self.title, *(f"- {sentence}" for sentence in self.worse)]
        for heading, sentences in (("Over:", self.recovered), ("Still open:", self.continuing)):
            lines += [heading, *(f"- {sentence}" for sentence in sentences)] if sentences else []
        if self.baseline is not None:
            what = "version" if self.index else "the run of"
            lines.append(f"The baseline stays {what} {self.baseline}.")
        if self.report is not None:
            lines.append(f"Report: {self.report}")
        return "\n".join(lines)

    @property
    def content(self) -> dict[str, Any]:
        """The alert as JSON; chat services show `text`."""
        lists = {name: list(getattr(self, name)) for name in ("worse", "recovered", "continuing")}
        return {"title": self.title, "text": self.text, **asdict(self), **lists}


@dataclass(frozen=True, slots=True)
class Sent:
    """An alert that was sent to all recipients.

    Args:
        is_received: True if a recipient accepted it, or if there is none and it was written to the default file.
        failed: A sentence for each recipient that could not be reached.
    """

    is_received: bool
    failed: tuple[str, ...] = ()


def send(alert: Alert, settings: AlertSettings) -> Sent:
    """Send an alert to all recipients.

    Args:
        alert: Alert to send.
        settings: Recipients of the alert.

    Returns:
        The recipients that could not be reached; the log of the flow run names them, too.
    """
    deliveries = deliver(alert, settings)
    failed = tuple(
        f"the alert could not be sent to the {each.channel}: {each.reply}" for each in deliveries if not each.is_sent
    )
    if len(failed) == len(deliveries):
        _append(default_file(), alert)
    _emit(alert)
    logger = get_run_logger()
    logger.error(alert.text)
    for sentence in failed:
        logger.error(sentence)
    return Sent(not deliveries or len(failed) < len(deliveries), failed)


@dataclass(frozen=True, slots=True)
class Delivery:
    """The delivery of an alert to one recipient.

    Args:
        channel: Kind of the recipient: webhook, block, email or file.
        is_sent: True if the recipient accepted the alert.
        reply: The recipient's reply, or the reason why the alert could not be sent.
    """

    channel: str
    is_sent: bool
    reply: str


def deliver(alert: Alert, settings: AlertSettings) -> tuple[Delivery, ...]:
    """Send an alert to each recipient, and return what came back.

    Args:
        alert: Alert to send.
        settings: Recipients of the alert.
    """
    channels: dict[str, Callable[[], str]] = {}
    if settings.webhook is not None:
        webhook = settings.webhook
        channels["webhook"] = lambda: _post(read_secret(webhook), alert)
    if settings.block is not None:
        block = settings.block
        channels["block"] = lambda: _notify(block, alert)
    if settings.email is not None:
        email = settings.email
        channels["email"] = lambda: _mail(email, alert)
    if settings.file is not None:
        file = Path(settings.file)
        channels["file"] = lambda: _append(file, alert)
    return tuple(_deliver_to(name, send_to) for name, send_to in channels.items())


def send_test(settings: AlertSettings) -> tuple[Delivery, ...]:
    """Send a test message to each recipient, or to the default file without one, and return what came back.

    Args:
        settings: Recipients of alerts.
    """
    alert = Alert(index="test", version="test", outcome="test", flow_run="")
    return deliver(alert, settings) or (_deliver_to("file", lambda: _append(default_file(), alert)),)


def default_file() -> Path:
    """Return the file of alerts that no recipient received."""
    return assay_home() / "alerts.jsonl"


def show_value(value: Any) -> str:
    """Return an index or a version as an alert names it, even if it is missing or invalid.

    >>> show_value("v1"), show_value(None), show_value(True)
    ('v1', '?', 'True')
    """
    return "?" if value is None else str(value)[:_SHOWN] or "?"


def link_to(folder: Path, page: str, settings: AlertSettings) -> str:
    """Return the URL of a page of a run folder.

    Args:
        folder: The run folder.
        page: The name of the page in it.
        settings: Alert settings; `link` is the URL of run folders, by default a file URL.
    """
    if settings.link is None:
        return (folder / page).as_uri()
    link = settings.link.replace("{folder}", quote(str(folder))).replace("{name}", quote(folder.name))
    return f"{link.rstrip('/')}/{page}"


def _deliver_to(channel: str, send_to: Callable[[], str]) -> Delivery:
    try:
        return Delivery(channel, True, send_to())
    except Exception as error:  # noqa: BLE001 a failure of one channel must not stop the others
        # The message of an HTTP error would repeat the URL, which may be a secret.
        reason = type(error).__name__ if isinstance(error, httpx.HTTPError) else f"{type(error).__name__}: {error}"
        return Delivery(channel, False, reason)


def _post(url: str, alert: Alert) -> str:
    transport = httpx.HTTPTransport(retries=_TRIES)
    with httpx.Client(timeout=_SECONDS, transport=transport) as client:
        response = client.post(url, json=alert.content)
    if response.is_error:
        raise RuntimeError(f"it replied with status {response.status_code}")
    return f"status {response.status_code}"


def _notify(name: str, alert: Alert) -> str:
    block = Block.load(name)
    if not isinstance(block, NotificationBlock):
        raise TypeError(f"the block {name} is not a notification block")
    cast("Any", block).notify(alert.text, alert.title)
    return f"{name} accepted the message"


def _mail(settings: EmailSettings, alert: Alert) -> str:
    server = SmtpServer.from_url(read_secret(settings.server))
    return send_mail(server, settings.sender, settings.to, alert.title, alert.text)


def _append(path: Path, alert: Alert) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    line = {"time": datetime.now(UTC).isoformat(timespec="seconds"), **alert.content}
    append_whole(path, json.dumps(line, ensure_ascii=False).encode() + b"\n")
    return f"written to {path}"


def _emit(alert: Alert) -> None:
    resource = f"rag.index.{alert.index}" if alert.index else f"rag.evaluation.{alert.name}"
    emit_event(EVENT, resource={"prefect.resource.id": resource}, payload=alert.content)
