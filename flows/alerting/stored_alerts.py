"""Read and write the alerts in stored messages, and find what they leave open or unreported."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from flows.alerting.alert import Alert
from metric_core.errors import AssayError
from tasks.history.message_log import AlertMessage

_ALERT = TypeAdapter(Alert)


def write_alert(alert: Alert) -> dict[str, Any]:
    """Return an alert as JSON that `read_alert` reads."""
    content: dict[str, Any] = _ALERT.dump_python(alert, mode="json")
    return content


def read_alert(content: Mapping[str, object]) -> Alert:
    """Return the alert that `write_alert` has written.

    Raises:
        AssayError: A later release has written it.
    """
    try:
        return _ALERT.validate_python(content)
    except ValidationError as error:
        raise AssayError(
            f"a message in the history cannot be read: {error.error_count()} fields are not as this rag-assay writes "
            "them. Use the same release on all machines that share the history."
        ) from error


def keys_of(alert: Alert | None, change: str) -> set[str]:
    """Return the keys of the incidents that an alert opens or ends.

    Args:
        alert: The alert; None has none.
        change: `opened` or `resolved`; incidents that are replaced have ended, too.
    """
    if alert is None:
        return set()
    is_end = change == "resolved"
    return {each.key for each in alert.incidents if each.change == change or (is_end and each.status == change)}


def open_alerts(messages: Iterable[AlertMessage]) -> dict[str, Alert]:
    """Return the alerts that opened what is still open after messages, by the keys of the incidents.

    An alert about no incident is there by its own id.

    Args:
        messages: Messages, oldest first.
    """
    found: dict[str, Alert] = {}
    for message in messages:
        alert = read_alert(message.content)
        for key in keys_of(alert, "resolved"):
            found.pop(key, None)
        found |= dict.fromkeys(keys_of(alert, "opened") if alert.incidents else {alert.id}, alert)
    return found


def choose_incidents(alert: Alert, keys: Collection[str]) -> Alert:
    """Return an alert about some of the incidents that it opens or ends.

    Args:
        keys: Keys of the incidents to keep; the alert stays as it is if these are all that it opens and ends.
    """
    changed = keys_of(alert, "opened") | keys_of(alert, "resolved")
    if changed <= set(keys):
        return alert
    kept = tuple(each for each in alert.incidents if each.key in keys)
    is_over = all(each.status == "resolved" for each in kept)
    return replace(alert, incidents=kept, notes=(), outcome="recovered" if is_over else "attention")


def cancel_pairs(messages: Sequence[AlertMessage], present: str = "") -> dict[int, dict[str, Any]]:
    """Return what must be sent of messages that were held back: not what began and ended meanwhile.

    Args:
        messages: Messages to one recipient, oldest first.
        present: Identity of the alert of the present run, which was not held back.

    Returns:
        Numbers and new contents of the messages to send.
    """
    opened: dict[str, int] = {}
    kept = {message.number: read_alert(message.content) for message in messages}
    unsent: dict[int, set[str]] = {number: set() for number in kept}
    for number, alert in kept.items():
        for key in keys_of(alert, "resolved") & opened.keys():
            unsent[opened.pop(key)].add(key)
            unsent[number].add(key)
        opened |= dict.fromkeys(keys_of(alert, "opened"), number)
    return {
        number: write_alert(_after_silence(alert, unsent[number], is_late=alert.id != present))
        for number, alert in kept.items()
        if not unsent[number] or unsent[number] != keys_of(alert, "opened") | keys_of(alert, "resolved")
    }


def _after_silence(alert: Alert, unsent: Collection[str], *, is_late: bool) -> Alert:
    chosen = choose_incidents(alert, {each.key for each in alert.incidents} - set(unsent))
    if not is_late:
        return chosen
    return replace(chosen, remark=f"This message is of {alert.time:%Y-%m-%d %H:%M}: it was held back by a silence.")
