"""Deliver alerts to their recipients.

Each recipient is notified separately: one that cannot be reached does not affect the others. Without recipients, or
if none can be reached, the alert is appended to a file.
"""

from dataclasses import dataclass

import httpx
from prefect.context import FlowRunContext
from prefect.events import emit_event

from flows.alerting.alert import Alert
from flows.alerting.recipients import Recipient, default_file, recipients_of
from flows.config.alert_options import AlertSettings
from tasks.prefect_support.run_log import run_logger

EVENT = "rag.index.alert"
"""The Prefect event that every alert emits, for custom automations."""


@dataclass(frozen=True, slots=True)
class Sent:
    """An alert that was sent to all recipients.

    Args:
        is_received: True if a recipient accepted it, or if there is none and it was written to the default file.
        undelivered: A sentence for each recipient that could not be reached.
    """

    is_received: bool
    undelivered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Delivery:
    """The delivery of an alert to one recipient.

    Args:
        channel: Name of the recipient.
        is_sent: True if the recipient accepted the alert.
        reply: The recipient's reply, or the reason why the alert could not be sent.
    """

    channel: str
    is_sent: bool
    reply: str


class Outbox:
    """The messages about an evaluation.

    Args:
        settings: Recipients of the messages.
        history: Address of the history, as the option `history`.
        name: Name of the evaluation.
    """

    def __init__(self, settings: AlertSettings, history: str | None, name: str) -> None:
        self._settings = settings
        self._history = history
        self._name = name

    def send(self, alert: Alert) -> Sent:
        """Send an alert to all recipients.

        Args:
            alert: Alert to send.

        Returns:
            The recipients that could not be reached; the log of the flow run names them, too.
        """
        deliveries = [_deliver(each, alert) for each in recipients_of(self._settings)]
        failed = tuple(
            f"the alert could not be sent to the {each.channel}: {each.reply}"
            for each in deliveries
            if not each.is_sent
        )
        if len(failed) == len(deliveries):
            default_file().send(alert)
        _emit(alert)
        logger = run_logger()
        logger.error(alert.text)
        for sentence in failed:
            logger.error(sentence)
        return Sent(not deliveries or len(failed) < len(deliveries), failed)

    def resend(self) -> Sent:
        """Send what recipients have not accepted."""
        return Sent(True)


def send_test(settings: AlertSettings) -> tuple[Delivery, ...]:
    """Send a test message to each recipient, or to the default file without one, and return what came back.

    Args:
        settings: Recipients of alerts.
    """
    alert = Alert(index="test", version="test", outcome="test", flow_run="")
    return tuple(_deliver(each, alert) for each in recipients_of(settings) or (default_file(),))


def _deliver(recipient: Recipient, alert: Alert) -> Delivery:
    try:
        return Delivery(recipient.name, True, recipient.send(alert))
    except Exception as error:  # noqa: BLE001 a failure of one recipient must not stop the others
        # The message of an HTTP error would repeat the URL, which may be a secret.
        reason = type(error).__name__ if isinstance(error, httpx.HTTPError) else f"{type(error).__name__}: {error}"
        return Delivery(recipient.name, False, reason)


def _emit(alert: Alert) -> None:
    resource = f"rag.index.{alert.index}" if alert.index else f"rag.evaluation.{alert.name}"
    if FlowRunContext.get() is not None:
        emit_event(EVENT, resource={"prefect.resource.id": resource}, payload=alert.content)
