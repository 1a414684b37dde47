"""Send alerts to their recipients: webhook, chat block, mailbox, on-call services, plugin, file."""

import hashlib
import re
import smtplib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, ClassVar, cast

import httpx
from prefect.blocks.abstract import NotificationBlock, NotificationError
from prefect.blocks.core import Block

from flows.alerting.alert import Alert
from flows.alerting.formats import (
    alertmanager_alert,
    pagerduty_event,
    service_events,
)
from flows.config.alert_options import (
    AlertmanagerSettings,
    EmailSettings,
    PagerDutySettings,
    PluginRecipientSettings,
    RecipientOptions,
)
from tasks.plugins.instantiate import instantiate
from tasks.plugins.load_object import Group
from tasks.runtime.atomic_files import append_whole
from tasks.runtime.credentials import check_variable, read_secret
from tasks.runtime.home import assay_home
from tasks.runtime.http_errors import name_http_error
from tasks.runtime.jsonl_text import to_json_lines
from tasks.runtime.smtp import CONFIRMATION_SECONDS, SECONDS, SmtpServer, send_mail
from tasks.runtime.trust import trusted_certificates
from tasks.runtime.writable import check_file

_SECONDS = 15.0
_LONGEST = 45.0
_TEMPORARY = (408, 425, 429)
"""Client errors of HTTP that a later try may not meet."""
_SHOWN = 300
_LEAST_SECRET = 7
"""Characters of the shortest word in a secret that is one itself; `Bearer` is not."""


class RecipientError(Exception):
    """A recipient that did not accept an alert. The message holds no secret.

    Args:
        reply: The reply of the recipient, or why there is none.
        is_lasting: True if another try would fail in the same way, or would repeat what was accepted in part.
        retry_after: Seconds to wait before another try, if the recipient said so.
    """

    def __init__(self, reply: str, *, is_lasting: bool = False, retry_after: float | None = None) -> None:
        super().__init__(reply)
        self.is_lasting = is_lasting
        self.retry_after = retry_after


class Recipient(ABC):
    """A recipient of alerts."""

    __slots__ = ()

    name: ClassVar[str]
    """Its name among the recipients of a configuration, which is that of its option."""
    renews: ClassVar[bool] = False
    """True if it forgets open incidents, so that each run must send them again."""
    keeps: ClassVar[bool] = False
    """True if it keeps incidents itself, so that it needs their ends even if people need no message about them."""
    seconds: ClassVar[float] = _LONGEST
    """Time that it may take to accept a message."""

    @abstractmethod
    def check(self) -> str:
        """Check what can be checked without sending anything, and return a description of the recipient.

        Raises:
            AssayError: Alerts cannot be sent to it.
        """

    @abstractmethod
    def send(self, alert: Alert) -> str:
        """Send an alert, and return the reply.

        Raises:
            RecipientError: The recipient did not accept the alert, or could not be reached.
            AssayError: A secret cannot be read.
        """


@dataclass(frozen=True, slots=True)
class WebhookRecipient(Recipient):
    """A URL that alerts are posted to as JSON."""

    reference: str
    name = "webhook"

    def check(self) -> str:
        """Check that the variable of the URL is set."""
        check_variable(self.reference)
        return self.reference

    def send(self, alert: Alert) -> str:
        """Post an alert."""
        with _client() as client:
            return _post(client, read_secret(self.reference), alert.content)


@dataclass(frozen=True, slots=True)
class BlockRecipient(Recipient):
    """A notification block of the Prefect server."""

    block: str
    name = "block"

    def check(self) -> str:
        """Return the name of the block, which only its server can check."""
        return self.block

    def send(self, alert: Alert) -> str:
        """Notify the block."""
        block = Block.load(self.block)
        if not isinstance(block, NotificationBlock):
            raise RecipientError(f"the block {self.block} is not a notification block", is_lasting=True)
        with block.raise_on_failure(), _translate_http():
            try:
                cast("Any", block).notify(alert.text, alert.title)
            except NotificationError as error:  # its log may have the URL of the block
                found = re.search(r"error=(\d{3})\b", error.log or "")
                if found is None:
                    raise RecipientError("the message could not be sent") from None
                raise _refusal(int(found[1])) from None
        return f"{self.block} accepted the message"


@dataclass(frozen=True, slots=True)
class EmailRecipient(Recipient):
    """A mailbox."""

    settings: EmailSettings
    name = "email"
    seconds = SECONDS + CONFIRMATION_SECONDS

    def check(self) -> str:
        """Check the URL of the SMTP server, unless it is in a block."""
        check_variable(self.settings.server)
        if self.settings.server.startswith("block:"):
            return self.settings.server
        server = SmtpServer.from_url(read_secret(self.settings.server))
        return f"{server.host}, port {server.port}, {server.security}"

    def send(self, alert: Alert) -> str:
        """Mail an alert."""
        server = SmtpServer.from_url(read_secret(self.settings.server))
        try:
            to = self.settings.to
            identity = f"{alert.id}.{hashlib.sha256(','.join(to).encode()).hexdigest()[:8]}"
            return send_mail(server, self.settings.sender, to, alert.title, alert.text, identity=identity)
        except (OSError, smtplib.SMTPException) as error:
            codes = [code for code, _ in getattr(error, "recipients", {}).values()] or [getattr(error, "smtp_code", 0)]
            reply = f"{type(error).__name__}: {error}"
            raise RecipientError(reply, is_lasting=all(code >= 500 for code in codes)) from error
        except RuntimeError as error:  # the other recipients have the message
            raise RecipientError(str(error), is_lasting=True) from error

    def addresses(self) -> Iterator[tuple[str, "EmailRecipient"]]:
        """Yield each address as a separate recipient: a server may accept some and refuse others."""
        for address in self.settings.to:
            yield f"{self.name} to {address}", EmailRecipient(self.settings.model_copy(update={"to": (address,)}))


@dataclass(frozen=True, slots=True)
class PagerDutyRecipient(Recipient):
    """A service of PagerDuty."""

    settings: PagerDutySettings
    name = "pagerduty"
    keeps = True

    def check(self) -> str:
        """Check that the variable of the key is set."""
        check_variable(self.settings.routing_key)
        return self.settings.url

    def send(self, alert: Alert) -> str:
        """Send an event for each incident that opened or ended."""
        key = read_secret(self.settings.routing_key)
        events = (pagerduty_event(each, key) for each in service_events(alert))
        return _post_each(((self.settings.url, event) for event in events), {}, key)


@dataclass(frozen=True, slots=True)
class AlertmanagerRecipient(Recipient):
    """Alertmanager, or a service with its API."""

    settings: AlertmanagerSettings
    name = "alertmanager"
    renews = True
    keeps = True

    def check(self) -> str:
        """Check that the variable of the header is set, if there is one."""
        if self.settings.authorization is not None:
            check_variable(self.settings.authorization)
        return self.settings.alerts_url

    def send(self, alert: Alert) -> str:
        """Send all incidents, those that are still open too: Alertmanager forgets them when it restarts."""
        keep, now = timedelta(days=self.settings.keep_days), datetime.now(UTC)
        events = service_events(alert, with_continuing=True)
        # Ending the test at once would hide that it was open; it ends by itself.
        alerts = [alertmanager_alert(each, keep, now) for each in events if each.is_open or each.kind != "test"]
        secret = "" if self.settings.authorization is None else read_secret(self.settings.authorization)
        requests = [(self.settings.alerts_url, alerts)] if alerts else []
        return _post_each(requests, {"Authorization": secret} if secret else {}, secret)


@dataclass(frozen=True, slots=True)
class FileRecipient(Recipient):
    """A file of alerts, one JSON object per line."""

    path: str | Path
    name = "file"

    def check(self) -> str:
        """Check that the file can be written."""
        check_file(Path(self.path), "the file of alerts")
        return str(self.path)

    def send(self, alert: Alert) -> str:
        """Append an alert."""
        path = Path(self.path)
        line = {"sent": datetime.now(UTC).isoformat(timespec="seconds"), **alert.content}
        try:
            append_whole(path, to_json_lines([line]).encode())
        except OSError as error:
            raise RecipientError(f"{type(error).__name__}: {error}") from error
        return f"written to {path}"


@dataclass(frozen=True, slots=True)
class PluginRecipient(Recipient):
    """A user-defined recipient."""

    settings: PluginRecipientSettings
    name = "plugin"

    def check(self) -> str:
        """Create the recipient, and return its name."""
        self._create()
        return self.settings.recipient

    def send(self, alert: Alert) -> str:
        """Hand the alert to the recipient."""
        created = self._create()
        try:
            reply = created.send(alert.content)
        except Exception as error:  # noqa: BLE001 any, and its message may hold a secret
            raise RecipientError(f"{self.settings.recipient} raised {type(error).__name__}") from None
        return str(reply or f"{self.settings.recipient} accepted the message")

    def _create(self) -> Any:
        return instantiate(Group.RECIPIENTS, self.settings.recipient, self.settings.options).obj


RECIPIENTS: Mapping[str, Callable[[Any], Recipient]] = {
    each.name: cast("Callable[[Any], Recipient]", each)
    for each in (
        WebhookRecipient,
        BlockRecipient,
        EmailRecipient,
        PagerDutyRecipient,
        AlertmanagerRecipient,
        PluginRecipient,
        FileRecipient,
    )
}
"""Name of the option in `deploy.alerts` -> the recipient that its value declares."""


def recipients_of(settings: RecipientOptions) -> tuple[Recipient, ...]:
    """Return the recipients of a configuration."""
    chosen = {name: getattr(settings, name) for name in RECIPIENTS}
    return tuple(RECIPIENTS[name](value) for name, value in chosen.items() if value is not None)


def default_file() -> FileRecipient:
    """Return the file of alerts that no recipient received."""
    return FileRecipient(assay_home() / "alerts.jsonl")


def _client() -> httpx.Client:
    return httpx.Client(timeout=_SECONDS, verify=trusted_certificates())


def _post(client: httpx.Client, url: str, content: Any, *, secret: str | None = None) -> str:
    """Post JSON, and return the reply in words.

    Args:
        url: URL, which may be a secret.
        secret: Secret of a service whose replies explain what was wrong; errors quote them without the secret. The
            replies of other servers are not quoted.

    Raises:
        RecipientError: The server replied with anything but success, or did not reply.
    """
    with _translate_http():
        response = client.post(url, json=content)
    if response.is_success:
        return f"status {response.status_code}"
    said = ""
    if secret is not None:
        said = " ".join(response.text.split())
        for part in (secret, *secret.split()):  # the value of a header has a scheme before the secret
            said = said.replace(part, "***") if len(part) >= _LEAST_SECRET else said
    raise _refusal(response.status_code, said[:_SHOWN], _seconds_to_wait(response.headers))


def _post_each(requests: Iterable[tuple[str, Any]], headers: Mapping[str, str], secret: str) -> str:
    """Post each content to its URL, and return the replies; one that is refused for good does not stop the others."""
    replies, refused = [], []
    with _client() as client:
        client.headers.update(headers)
        for url, content in requests:
            try:
                replies.append(_post(client, url, content, secret=secret))
            except RecipientError as error:
                refused.append(error)
                if not error.is_lasting:
                    break
    if refused:
        raise refused[-1]
    return ", ".join(dict.fromkeys(replies)) or "there is nothing to send: no incident has opened or ended"


@contextmanager
def _translate_http() -> Iterator[None]:
    """Raise RecipientError for errors of HTTP, without their messages and causes: these may repeat the URL."""
    try:
        yield
    except httpx.HTTPStatusError as error:
        raise _refusal(error.response.status_code) from None
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise RecipientError(f"its URL is not valid: {type(error).__name__}", is_lasting=True) from None
    except httpx.HTTPError as error:
        raise RecipientError(name_http_error(error)) from None


def _refusal(status: int, said: str = "", retry_after: float | None = None) -> RecipientError:
    is_lasting = status < 500 and status not in _TEMPORARY
    reply = f"it replied with status {status}" + (f": {said}" if said else "")
    return RecipientError(reply, is_lasting=is_lasting, retry_after=retry_after)


def _seconds_to_wait(headers: httpx.Headers) -> float | None:
    """Return the seconds that a server asks clients to wait in `Retry-After`."""
    wanted = headers.get("Retry-After", "")
    if wanted.isdecimal():
        return float(wanted)
    try:
        until = parsedate_to_datetime(wanted)
    except ValueError:
        return None
    return max(0.0, (until - datetime.now(UTC)).total_seconds())
