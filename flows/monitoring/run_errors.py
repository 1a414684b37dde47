"""Tell people of a monitored run that could not be finished."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prefect.runtime import flow_run

from flows.alerting.alert import Alert, show_value
from flows.alerting.outbox import Outbox, Sent
from flows.config.run_config import RunConfig
from flows.monitoring.incidents import IncidentBook, alert_incidents, change_incidents
from flows.monitoring.watched import Watched
from metric_core.errors import AssayError, FailedCellsError
from tasks.prefect_support.patience import is_unavailable
from tasks.runs.outcome import OutcomeIncident, OutcomeIncidents
from tasks.runs.run_folder import REPORT


@dataclass(slots=True)
class RunErrors:
    """Alerts about errors of a run.

    A run about no index tells of an error once, until a run is finished; a version of an index always does.

    Args:
        config: Configuration of the run, with the recipients.
        watched: Subject of the run; None while it is not known.
        payload: The fields of the event that started the run, which may be invalid.
    """

    config: RunConfig
    watched: Watched | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)

    @contextmanager
    def report(self) -> Iterator[None]:
        """Send an alert about an error in the block, and raise the error again."""
        try:
            yield
        except Exception as error:
            if not is_unavailable(error):  # the run is resumed, and its alert could not be sent anyway
                self._report(error)
            raise

    def _report(self, error: Exception) -> None:
        # An AssayError is written for users; other messages may contain secrets, so only their type is sent.
        reason = str(error) if isinstance(error, AssayError) else f"{type(error).__name__}; the log of the run has more"
        folder = Path(error.folder) if isinstance(error, FailedCellsError) else None
        if self.watched is None:
            self._send(self._alert(OutcomeIncidents(), folder, reason))
            return
        incident = OutcomeIncident(
            key=f"error:{type(error).__name__}",
            kind="error",
            sentence=reason,
            since=datetime.now(UTC),
            run_id=str(flow_run.id or ""),
        )
        book = IncidentBook(self.config.history, self.watched.name)
        known = book.read()
        other = {each.key for each in known if each.kind == "error"} - {incident.key}
        incidents = change_incidents(known, [incident], lambda _open: False, other)
        must_tell = bool(incidents.opened or self.watched.index)
        notes = () if incidents.opened else (reason,)
        told = not must_tell or self._send(self._alert(incidents, folder, *notes)).is_received
        book.write(incidents, other, incident.run_id, told=told)

    def _send(self, alert: Alert) -> Sent:
        return Outbox(self.config.deploy.alerts, self.config.history, alert.name).send(alert)

    def _alert(self, incidents: OutcomeIncidents, folder: Path | None, *notes: str) -> Alert:
        about = self.payload if self.watched is None else {"index": self.watched.index, "version": self.watched.version}
        name = "" if self.watched is None else self.watched.name
        has_index = self.watched is None or bool(self.watched.index)
        return Alert(
            name=name,
            index=show_value(about.get("index")) if has_index else "",
            version=show_value(about.get("version")),
            outcome="error",
            incidents=alert_incidents(name, incidents, with_continuing=False),
            notes=notes,
            folder=None if folder is None else str(folder),
            report=None if folder is None else self.config.deploy.alerts.link_to(folder, REPORT),
            flow_run=str(flow_run.id),
        )
