"""Deliver alerts to their recipients, each separately.

The history keeps a message for each recipient until that recipient has accepted it: an alert is written there before
anything is sent, and each run sends what is due. A message is marked as sent after it was accepted, so one whose sender
dies in between is sent twice; receivers recognize it by its id. If the history cannot be used, alerts are sent at once.
What no recipient accepts at first, and what is given up, is appended to a file.
"""

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from prefect.context import FlowRunContext
from prefect.events import emit_event

from flows.alerting import delivery
from flows.alerting.alert import Alert
from flows.alerting.delivery import Delivery
from flows.alerting.delivery_round import DeliveryRound
from flows.alerting.recipients import Recipient
from flows.alerting.routing import add_runbooks, escalation_recipients, own_recipients, part_for
from flows.alerting.silencing import active_silence
from flows.config.alert_options import AlertSettings
from metric_core.errors import AssayError
from tasks.history.alert_log import AlertLog
from tasks.history.incident import IncidentChanges
from tasks.history.operator_log import Silence
from tasks.history.steady_time import steady_time
from tasks.prefect_support.run_log import run_logger

EVENT = "rag.index.alert"
"""The Prefect event that every alert emits, for custom automations."""

NO_CHANGES = IncidentChanges()
"""No change of any incident."""

_STARTS = 100
"""Number of the latest runs that say how much time may pass between two."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The state of the messages about an evaluation after a delivery.

    Args:
        is_received: True if a recipient accepted the alert, if the history keeps it until one does, or if there is no
            recipient and it was written to the default file.
        undelivered: A sentence for each recipient that has not accepted all messages.
        is_silenced: True if messages are held back by a silence.
    """

    is_received: bool
    undelivered: tuple[str, ...] = ()
    is_silenced: bool = False


class Outbox:
    """The messages about an evaluation.

    Args:
        history: Address of the history, as the option `history`.
    """

    def __init__(self, settings: AlertSettings, history: str | None, name: str) -> None:
        self._settings = settings
        self._history = history
        self._name = name

    def send(self, alert: Alert, changes: IncidentChanges = NO_CHANGES) -> Sent:
        """Send an alert to all recipients, and what they have not accepted of earlier ones.

        An alert is sent once, even if a run that is resumed sends it again. While messages are silenced, it is kept
        until the silence is over.

        Args:
            changes: Changes of incidents that the alert is about, written with it; what another run at the same time
                has changed is not news.

        Returns:
            What the recipients have not accepted; the log of the flow run has it, too.
        """
        alert = add_runbooks(alert, self._settings)
        if not alert.is_quiet:
            run_logger().error(alert.text)
        return self._log(self._work(alert, changes))

    def resend(self, changes: IncidentChanges = NO_CHANGES) -> Sent:
        """Send what recipients have not accepted, what was silenced until now, and what is to be escalated.

        Args:
            changes: Changes of incidents that need no message.
        """
        return self._log(self._work(None, changes))

    def _work(self, alert: Alert | None, changes: IncidentChanges) -> Sent:
        now, deadline = _now(), time.monotonic() + delivery.RUN_SECONDS
        try:
            log = AlertLog(self._history)
            steady = steady_time(now, log.latest_starts(self._name, _STARTS))
            silence = self._silence(log.silences(self._name, steady), now, steady)
            messages = DeliveryRound(log, self._name, self._settings, alert, now, steady)
            written = messages.put(changes)
        except AssayError as error:
            run_logger().warning("alerts are sent without the history: %s", error)
            return Sent(True) if alert is None else self._send_directly(alert, now, deadline)
        if silence is not None:
            why = f" ({silence.reason})" if silence.reason else ""
            run_logger().warning(f"no messages are sent until {silence.ends:%Y-%m-%d %H:%M}{why}")
            return Sent(True, is_silenced=True)
        try:
            for each in messages.release(written):
                _emit(each)
            undelivered = messages.deliver(deadline)
            if written is not None and not messages.is_accepted(written):
                delivery.write_to_file(written)
        except AssayError as error:
            undelivered = (f"it is not known which messages were delivered: {error}",)
        return Sent(True, undelivered)

    def _silence(self, silences: list[Silence], now: datetime, steady: datetime | None = None) -> Silence | None:
        try:
            return active_silence(silences, self._settings.maintenance, now, steady)
        except AssayError as error:
            run_logger().error("messages are sent as if there were no maintenance: %s", error)
            return active_silence(silences, (), now, steady)

    def _send_directly(self, alert: Alert, now: datetime, deadline: float) -> Sent:
        """Send an alert that nothing keeps, and write it to the file of alerts if no recipient accepts it."""
        if self._silence([], now) is not None:  # the incidents are not recorded either, so the next run sends them
            delivery.write_to_file(alert)
            return Sent(False, is_silenced=True)
        own = own_recipients(self._settings)
        parts = {name: part for name in own if (part := part_for(name, alert, self._settings)) is not None}
        recipients = {name: own[name] for name, part in parts.items() if own[name].keeps or not part.is_quiet}
        done = {name: Delivery(name, False, delivery.NO_REPLY) for name in recipients}

        def send(name: str, recipient: Recipient) -> None:
            done[name] = delivery.try_repeatedly(partial(delivery.try_once, recipient, parts[name]), deadline)

        _emit(alert)
        works = {name: partial(send, name, each) for name, each in recipients.items()}
        delivery.run_beside(works, deadline, {name: each.seconds for name, each in recipients.items()})
        failed = {name: each.reply for name, each in done.items() if not each.is_sent}
        if len(failed) == len(recipients) and not alert.is_quiet:
            delivery.write_to_file(alert)
        sentences = tuple(f"the alert could not be sent to the {name}: {reply}" for name, reply in failed.items())
        return Sent(len(failed) < len(recipients), sentences)

    def _log(self, sent: Sent) -> Sent:
        for sentence in sent.undelivered:
            run_logger().error(sentence)
        return sent


def send_test(settings: AlertSettings) -> tuple[Delivery, ...]:
    """Send a test message to each recipient, or to the default file without one, and return what came back."""
    alert = Alert(index="test", version="test", outcome="test", flow_run="")
    recipients = {**own_recipients(settings), **escalation_recipients(settings)}
    return tuple(replace(delivery.try_once(each, alert), channel=name) for name, each in recipients.items())


def _emit(alert: Alert) -> None:
    resource = f"rag.index.{alert.index}" if alert.index else f"rag.evaluation.{alert.name}"
    if FlowRunContext.get() is not None:
        emit_event(EVENT, resource={"prefect.resource.id": resource}, payload=alert.content)


def _now() -> datetime:
    return datetime.now(UTC)
