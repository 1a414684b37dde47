"""The recipients of alerts: a webhook, a block of the Prefect server, a mailbox, a file."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, cast

import httpx
from prefect.blocks.abstract import NotificationBlock
from prefect.blocks.core import Block

from flows.alerting.alert import Alert
from flows.config.alert_options import AlertSettings, EmailSettings
from tasks.runtime.atomic_files import append_whole
from tasks.runtime.credentials import read_secret
from tasks.runtime.home import assay_home
from tasks.runtime.smtp import SmtpServer, send_mail

_SECONDS = 15.0
_TRIES = 3


class Recipient(Protocol):
    """A recipient of alerts."""

    @property
    def name(self) -> str:
        """Its name among the recipients of a configuration."""
        ...

    def send(self, alert: Alert) -> str:
        """Send an alert, and return the reply.

        Args:
            alert: Alert to send.

        Raises:
            Exception: The alert could not be sent.
        """
        ...


@dataclass(frozen=True, slots=True)
class WebhookRecipient:
    """A URL that alerts are posted to as JSON."""

    reference: str
    name: str = "webhook"

    def send(self, alert: Alert) -> str:
        """Post an alert."""
        transport = httpx.HTTPTransport(retries=_TRIES)
        with httpx.Client(timeout=_SECONDS, transport=transport) as client:
            response = client.post(read_secret(self.reference), json=alert.content)
        if response.is_error:
            raise RuntimeError(f"it replied with status {response.status_code}")
        return f"status {response.status_code}"


@dataclass(frozen=True, slots=True)
class BlockRecipient:
    """A notification block of the Prefect server."""

    block: str
    name: str = "block"

    def send(self, alert: Alert) -> str:
        """Notify the block."""
        block = Block.load(self.block)
        if not isinstance(block, NotificationBlock):
            raise TypeError(f"the block {self.block} is not a notification block")
        cast("Any", block).notify(alert.text, alert.title)
        return f"{self.block} accepted the message"


@dataclass(frozen=True, slots=True)
class EmailRecipient:
    """A mailbox."""

    settings: EmailSettings
    name: str = "email"

    def send(self, alert: Alert) -> str:
        """Mail an alert."""
        server = SmtpServer.from_url(read_secret(self.settings.server))
        return send_mail(server, self.settings.sender, self.settings.to, alert.title, alert.text)


@dataclass(frozen=True, slots=True)
class FileRecipient:
    """A file of alerts, one JSON object per line."""

    path: Path
    name: str = "file"

    def send(self, alert: Alert) -> str:
        """Append an alert."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = {"sent": datetime.now(UTC).isoformat(timespec="seconds"), **alert.content}
        append_whole(self.path, json.dumps(line, ensure_ascii=False).encode() + b"\n")
        return f"written to {self.path}"


def recipients_of(settings: AlertSettings) -> tuple[Recipient, ...]:
    """Return the recipients of a configuration.

    Args:
        settings: Options that name them.
    """
    found: list[Recipient] = []
    if settings.webhook is not None:
        found.append(WebhookRecipient(settings.webhook))
    if settings.block is not None:
        found.append(BlockRecipient(settings.block))
    if settings.email is not None:
        found.append(EmailRecipient(settings.email))
    if settings.file is not None:
        found.append(FileRecipient(Path(settings.file)))
    return tuple(found)


def default_file() -> FileRecipient:
    """Return the file of alerts that no recipient received."""
    return FileRecipient(assay_home() / "alerts.jsonl")
