"""Close incidents on request: no run will find them resolved."""

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from flows.alerting.alert import Alert
from flows.alerting.outbox import Outbox, Sent
from flows.config.result_options import MonitoringOptions
from flows.monitoring.incidents import IncidentBook, alert_incidents, subject_of_alert
from flows.monitoring.missed_runs import KEY as MISSED_RUNS
from metric_core.errors import ConfigError
from metric_core.parsing.suggestions import suggest_names
from tasks.record.outcome import OutcomeIncident, OutcomeIncidents

STUCK, UNREPORTED = "stuck", "error: not reported"
OF_SERVER = (MISSED_RUNS, STUCK, UNREPORTED)
"""Keys of the incidents that the Prefect server opens at services, and that no history knows."""


@dataclass(frozen=True, slots=True)
class ClosedByHand:
    """The incidents that a person closed.

    Args:
        sent: The state of the messages about their ends.
    """

    incidents: tuple[OutcomeIncident, ...]
    sent: Sent


def close_incidents(options: MonitoringOptions, name: str, keys: Collection[str] = (), by: str = "") -> ClosedByHand:
    """Close open incidents of an evaluation, and tell its recipients that they are over.

    Args:
        options: Options with the history and the recipients.
        keys: Keys of the incidents; empty for all that are open in the history or in the file beside it. Those of the
            Prefect server are closed at the recipients whether or not they are open.
        by: Who closes them; may be empty.

    Raises:
        ConfigError: No incident with one of these keys is open.
    """
    book = IncidentBook(options.history, name, f"closed manually {uuid.uuid4().hex[:12]}")
    known = {each.key: each for each in book.read()}
    for key in keys:
        if key not in known and key not in OF_SERVER:
            near = suggest_names(key, known) or known
            raise ConfigError(f"{name} has no open incident {key!r}, but {', '.join(near) or 'none'}")
    chosen = [known.get(key) or _of_server(key) for key in dict.fromkeys(keys or known)]
    others = tuple(each for each in known.values() if each not in chosen)
    incidents = OutcomeIncidents(recovered=tuple(chosen), continuing=others)
    outbox = Outbox(options.deploy.alerts, options.history, name)
    if not chosen:
        return ClosedByHand((), outbox.resend())
    alert = Alert(
        name=name,
        outcome=subject_of_alert(incidents),
        incidents=alert_incidents(name, incidents),
        remark=f"Closed manually{f', by {by}' if by else ''}.",
        flow_run=book.flow_run,
    )
    recorded = tuple(each for each in chosen if each.key in known)
    sent = outbox.send(alert, book.changes(incidents.model_copy(update={"recovered": recorded})))
    book.keep(incidents)
    return ClosedByHand(tuple(chosen), sent)


def _of_server(key: str) -> OutcomeIncident:
    sentence = f"the Prefect server reported: {key}"
    return OutcomeIncident(
        key=key, kind="missed" if key == MISSED_RUNS else "error", sentence=sentence, since=datetime.now(UTC)
    )
