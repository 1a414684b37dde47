"""Describe the state of open incidents: who got a message about each, and who takes care of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from flows.alerting.stored_alerts import keys_of, read_alert
from tasks.history.alert_log import AlertLog
from tasks.history.incident import Incident
from tasks.history.message_log import AlertMessage
from tasks.history.operator_log import Acknowledgement


@dataclass(frozen=True, slots=True)
class IncidentState:
    """An open incident, and what is known about its messages.

    Args:
        acknowledgement: Who takes care of it; None if nobody has acknowledged it.
        notified: Recipients of the message that opened it.
        waiting: Recipient -> last reply of those that have not accepted it.
        silenced: Recipients that get the message when a silence is over.
    """

    incident: Incident
    acknowledgement: Acknowledgement | None = None
    notified: list[str] = field(default_factory=list)
    waiting: dict[str, str] = field(default_factory=dict)
    silenced: list[str] = field(default_factory=list)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The state in words."""
        return tuple(self._sentences())

    def _sentences(self) -> Iterator[str]:
        if self.acknowledgement is not None:
            person = f" by {self.acknowledgement.person}" if self.acknowledgement.person else ""
            yield f"acknowledged{person} on {_show(self.acknowledgement.time)}"
        if self.notified:
            yield f"sent to: {', '.join(self.notified)}"
        for recipient, reply in self.waiting.items():
            yield f"not delivered to the {recipient}: {reply or 'not tried yet'}"
        if self.silenced:
            yield f"silenced: {', '.join(self.silenced)}"


def incident_states(log: AlertLog, name: str) -> list[IncidentState]:
    """Return the open incidents of an evaluation, oldest first.

    Raises:
        AssayError: The history cannot be used.
    """
    incidents = log.open_incidents(name)
    known = log.acknowledgements([each.incident_id for each in incidents])
    messages = log.messages(name) if incidents else []
    return [_state(each, known.get(each.incident_id), messages) for each in incidents]


def _state(
    incident: Incident, acknowledgement: Acknowledgement | None, messages: Sequence[AlertMessage]
) -> IncidentState:
    found = IncidentState(incident, acknowledgement)
    latest = {
        message.recipient: message
        for message in messages
        if f"{incident.name}/{incident.key}" in keys_of(read_alert(message.content), "opened")
    }
    for recipient, message in latest.items():
        if message.state == "sent":
            found.notified.append(recipient)
        elif message.state == "silenced":
            found.silenced.append(recipient)
        elif message.state in ("waiting", "given up"):
            found.waiting[recipient] = message.reply
    return found


def _show(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M}"
