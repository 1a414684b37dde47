"""Deliver the messages of an evaluation that wait in the history, as one run does."""

import time
import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial

from flows.alerting import delivery
from flows.alerting.alert import Alert
from flows.alerting.delivery import Delivery
from flows.alerting.recipients import Recipient
from flows.alerting.routing import ESCALATION, escalation_recipients, own_recipients, part_for
from flows.alerting.stored_alerts import cancel_pairs, choose_incidents, keys_of, open_alerts, read_alert, write_alert
from flows.config.alert_options import AlertSettings
from flows.config.intervals import parse_interval
from metric_core.errors import AssayError
from tasks.history.alert_log import AlertLog, Messages
from tasks.history.incident import ChangedIncidents, Incident, IncidentChanges
from tasks.history.message_log import AlertMessage
from tasks.prefect_support.run_log import run_logger

LEASE_SECONDS = 15.0
"""Seconds after the longest time of a recipient after which another run may send a message: its sender has died."""
WAITING_DAYS = 14
WAITING_MESSAGES = 200
"""Maximum number of messages that wait for a recipient."""

_POLL_SECONDS = 0.5
_REFUSALS = 3
"""Number of refused messages after which a run stops sending to a recipient."""


@dataclass(frozen=True)
class DeliveryRound:
    """The messages about an evaluation, as one run delivers them.

    Args:
        alert: Alert of the run; None without one.
        steady: Time by which a message has waited for too long; see `steady_time`.
    """

    log: AlertLog
    name: str
    settings: AlertSettings
    alert: Alert | None
    now: datetime
    steady: datetime

    def put(self, changes: IncidentChanges) -> Alert | None:
        """Change the incidents and write the messages about the alert, all or nothing, but do not send them yet.

        Returns:
            The alert, about what the run has changed itself; None if that is nothing, because another run at the same
            time was first, or if it was written before.

        Raises:
            AssayError: The history cannot be used.
        """
        late = list(self._missed(self._incidents.keys()))
        own: list[Alert] = []

        def word(changed: ChangedIncidents) -> Messages:
            own[:] = [] if self.alert is None else _own_changes(self.alert, changes, changed)
            rows = [(recipient, alert.id, alert) for recipient, alert in late]
            rows += [row for alert in own for row in self._addressed(alert)]
            return [(recipient, alert_id, write_alert(alert)) for recipient, alert_id, alert in rows]

        added = self.log.report(self.name, changes, word, "silenced", self.now)
        self._drop()  # last, because they say what is open
        return next((each for each in own if any(alert_id == each.id for _, alert_id in added)), None)

    def _addressed(self, alert: Alert) -> Iterator[tuple[str, str, Alert]]:
        """Yield what each of the recipients must get of an alert, with the id of the whole."""
        for name, recipient in self._own.items():
            part = part_for(name, alert, self.settings)
            if part is not None and (recipient.keeps or not part.is_quiet):
                yield name, alert.id, part
        yield from ((name, each.id, each) for name, each in self._ends(alert))

    def release(self, alert: Alert | None) -> list[Alert]:
        """Prepare for delivery what was just written or silenced before, and return the alerts.

        What began in a silence and is over by now is not sent.

        Args:
            alert: Alert that was just written; None without one.
        """
        present = "" if alert is None else alert.id
        released = self.log.end_silence(self.name, partial(cancel_pairs, present=present), self.now)
        return list({each.alert_id: read_alert(each.content) for each in released}.values())

    def deliver(self, deadline: float) -> tuple[str, ...]:
        """Send what is due, and return a sentence for each recipient that has not accepted all messages.

        Args:
            deadline: Time of `time.monotonic` after which nothing more is sent.

        Raises:
            AssayError: The history cannot be used.
        """
        self._escalate_overdue()
        self._send_all({**self._own, **self._further}, deadline)
        if self._escalate_undelivered():
            self._send_all(self._further, time.monotonic() + delivery.RUN_SECONDS / 2)
        self._renew()
        found = [each.sentence for each in self.log.find_undelivered(self.name)]
        oldest = self.steady - timedelta(days=WAITING_DAYS)
        for each in self.log.give_up(self.name, before=oldest, most=WAITING_MESSAGES, at=self.now):
            delivery.write_to_file(read_alert(each.content))
            found.append(
                f"the message of {each.created:%Y-%m-%d %H:%M} to the {each.recipient} is given up after {each.tries} "
                f"tries: {each.reply}"
            )
        return tuple(found)

    def is_accepted(self, alert: Alert) -> bool:
        """Return whether a recipient has accepted an alert, or none needs to."""
        found = self.log.messages(self.name, self._own, alert_id=alert.id)
        return not found or any(each.state in ("sent", "dropped") for each in found)

    @cached_property
    def _own(self) -> dict[str, Recipient]:
        return own_recipients(self.settings)

    @cached_property
    def _further(self) -> dict[str, Recipient]:
        return escalation_recipients(self.settings)

    @cached_property
    def _incidents(self) -> dict[str, Incident]:
        """The incidents that are open after the run and were so before, by their keys in alerts."""
        found = {f"{self.name}/{each.key}": each for each in self.log.open_incidents(self.name)}
        return {key: each for key, each in found.items() if key not in keys_of(self.alert, "resolved")}

    @cached_property
    def _acknowledged(self) -> set[str]:
        known = self.log.acknowledgements([each.incident_id for each in self._incidents.values()])
        return {key for key, each in self._incidents.items() if each.incident_id in known}

    def _write(self, rows: Collection[tuple[str, Alert]]) -> set[tuple[str, str]]:
        contents = [(recipient, alert.id, write_alert(alert)) for recipient, alert in rows]
        return self.log.put(self.name, contents, "waiting", self.now)

    def _drop(self) -> None:
        """Delete the messages to recipients that are not in the configuration any more."""
        if not self.name:  # alerts about no evaluation are of several configurations
            return
        for gone in self.log.drop(self.name, [*self._own, *self._further]):
            run_logger().warning(
                f"a message of {gone.created:%Y-%m-%d %H:%M} is not sent: the {gone.recipient} is not in deploy.alerts "
                "any more"
            )

    def _missed(self, known_keys: Collection[str]) -> Iterator[tuple[str, Alert]]:
        """Yield alerts about open incidents for recipients that were not in the configuration when they opened.

        Args:
            known_keys: Keys of the incidents that are open before the run and after it.
        """
        last = self.log.last_recipients(self.name, ESCALATION)
        if not last or not (added := self._own.keys() - last):
            return
        opened = open_alerts(each for each in self.log.messages(self.name) if not each.recipient.endswith(ESCALATION))
        for name in sorted(added):
            known = open_alerts(self.log.messages(self.name, [name]))
            parts = (part_for(name, each, self.settings) for each in _choose(opened, set(known_keys) - known.keys()))
            yield from ((name, part) for part in parts if part is not None)

    def _ends(self, alert: Alert) -> Iterator[tuple[str, Alert]]:
        """Yield the ends of incidents for recipients of escalations that got their beginnings."""
        for name in self._further if (over := keys_of(alert, "resolved")) else ():
            if known := over & open_alerts(self.log.messages(self.name, [name])).keys():
                yield name, choose_incidents(alert, known)

    def _send_all(self, to: Mapping[str, Recipient], deadline: float) -> None:
        works = {name: partial(self._send, name, recipient, deadline) for name, recipient in to.items()}
        patience = {name: recipient.seconds for name, recipient in to.items()}
        for name, error in delivery.run_beside(works, deadline, patience).items():
            if not isinstance(error, AssayError):
                raise error
            run_logger().error(f"it is not known whether the {name} got its messages: {error}")

    def _send(self, name: str, recipient: Recipient, deadline: float) -> None:
        """Send a recipient its messages, oldest first; stop at one that another try may deliver."""
        holder = uuid.uuid4().hex
        tried: set[int] = set()
        refused: set[str] = set()
        refusals = 0
        try:
            while time.monotonic() < deadline:
                claimed = self.log.claim(self.name, name, holder, recipient.seconds + LEASE_SECONDS)
                due = [each for each in claimed or () if each.number not in tried]
                if claimed is None:
                    time.sleep(_POLL_SECONDS)  # another run is sending them
                elif not due:
                    return
                for message in due:
                    tried.add(message.number)
                    alert = self._read_late(message)
                    keys = {each.key for each in alert.incidents}
                    if refused & keys:  # its end would arrive before its beginning
                        continue
                    done = delivery.try_repeatedly(partial(self._try, message, recipient, alert), deadline)
                    if done.is_sent:
                        continue
                    refusals += 1
                    refused |= keys
                    if not done.is_lasting or refusals >= _REFUSALS or time.monotonic() >= deadline:
                        return
        finally:
            self.log.let_go(holder)

    def _try(self, message: AlertMessage, recipient: Recipient, alert: Alert) -> Delivery:
        self.log.note_try(message.number, recipient.seconds + LEASE_SECONDS)
        done = delivery.try_once(recipient, alert)
        self.log.note_reply(message.number, done.reply, at=datetime.now(UTC) if done.is_sent else None)
        return done

    def _read_late(self, message: AlertMessage) -> Alert:
        """Return the alert of a message, which says so if it is late."""
        alert = read_alert(message.content)
        if alert.remark or message.created > self.now - timedelta(minutes=1):
            return alert
        return replace(alert, remark=f"This message could not be delivered since {message.created:%Y-%m-%d %H:%M}.")

    def _escalate_overdue(self) -> None:
        """Write messages about incidents that have been open for too long without an acknowledgement."""
        if self.settings.escalation is None:
            return
        after = self.settings.escalation.after
        limit = self.now - parse_interval(after)
        old = {key for key, each in self._incidents.items() if each.opened <= limit} - self._acknowledged
        if old:
            opened = open_alerts(self.log.messages(self.name, self._own))
            self._escalate(opened, old, f"it has been open for more than {after}, and nobody has acknowledged it")

    def _escalate_undelivered(self) -> bool:
        """Write messages about what recipients have not accepted, and return whether there are any."""
        found = [each.sentence for each in self.log.find_undelivered(self.name) if each.recipient in self._own]
        if not found or self.settings.escalation is None:
            return False
        waiting = open_alerts(self.log.messages(self.name, self._own, state="waiting"))
        return self._escalate(waiting, waiting.keys() - self._acknowledged, "; ".join(found))

    def _escalate(self, alerts: Mapping[str, Alert], keys: Collection[str], reason: str) -> bool:
        rows: list[tuple[str, Alert]] = []
        remark = f"This is escalated: {reason}."
        for name in self._further:
            known = open_alerts(self.log.messages(self.name, [name])).keys()
            missing = set(keys) - (known & self._incidents.keys())  # what is not in the history ends by itself
            rows += [(name, replace(alert, remark=remark)) for alert in _choose(alerts, missing)]
        return bool(self._write(rows))

    def _renew(self) -> None:
        """Send the open incidents again to recipients that forget them."""
        sent = set() if self.alert is None else {each.key for each in self.alert.incidents}
        works, patience = {}, {}
        for name, recipient in {**self._own, **self._further}.items():
            if recipient.renews:
                known = open_alerts(self.log.messages(self.name, [name], state="sent"))
                for alert in _choose(known, self._incidents.keys() - sent):
                    again = tuple(replace(each, change="continuing") for each in alert.incidents)
                    renewal = replace(alert, incidents=again)
                    works[f"{name} {alert.id}"] = partial(delivery.try_once, recipient, renewal)
                    patience[f"{name} {alert.id}"] = recipient.seconds
        delivery.run_beside(works, time.monotonic() + delivery.RUN_SECONDS / 2, patience)


def _own_changes(alert: Alert, changes: IncidentChanges, changed: ChangedIncidents) -> list[Alert]:
    """Return an alert about what a run has changed itself; nothing if another run has changed all of it."""
    wanted = {each.key for each in changes.opened} - changed.opened | {*changes.closed} - changed.closed
    others = {f"{alert.name}/{key}" for key in wanted}
    if others.isdisjoint(keys_of(alert, "opened") | keys_of(alert, "resolved")):
        return [alert]
    kept = [each for each in alert.incidents if each.key not in others]
    if all(each.change == "continuing" for each in kept):
        return []
    return [choose_incidents(alert, {each.key for each in kept})]


def _choose(alerts: Mapping[str, Alert], keys: Collection[str]) -> Iterator[Alert]:
    """Yield the alerts that opened some incidents, about those only."""
    chosen: dict[str, tuple[Alert, set[str]]] = {}
    for key, alert in alerts.items():
        if key in keys:
            chosen.setdefault(alert.id, (alert, set()))[1].add(key)
    for alert, own in chosen.values():
        yield choose_incidents(alert, own)
