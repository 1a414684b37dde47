"""Report a monitored run to people, whatever started it and whatever became of it.

Runs of a schedule, an event or a person are reported in the same way, and so is a run that could not begin: that needs
only a few options, which are read separately. docs/design/reporting.md says in which order, and why.
"""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from prefect.runtime import flow_run

from flows.alerting.alert import NO_RECIPIENT, NOT_DELIVERED, REPORTED, REPORTED_BEFORE, SILENCED, Alert, show_value
from flows.alerting.outbox import NO_CHANGES, Outbox, Sent
from flows.alerting.recipients import recipients_of
from flows.config.loading import check_options, reporting_options
from flows.config.result_options import MonitoringOptions
from flows.monitoring.heartbeat import call_heartbeat
from flows.monitoring.incidents import IncidentBook, alert_incidents, change_incidents, error_key
from flows.monitoring.monitored_run import MonitoredRun
from flows.publishing.history_record import record_without_results
from flows.publishing.metrics_file import write_metrics_file
from flows.publishing.result_sinks import send_results
from metric_core.errors import AssayError, ConfigError, FailedCellsError
from tasks.history.recorded_run import RecordedRun, RunDetails
from tasks.options.narrow import narrow
from tasks.prefect_support.patience import is_unavailable
from tasks.prefect_support.run_log import run_logger
from tasks.record.outcome import OutcomeIncident, OutcomeIncidents
from tasks.runs.run_folder import REPORT


@dataclass(slots=True, kw_only=True)
class Reporter:
    """Reports a monitored run.

    Args:
        options: Options of what follows from the run, as far as they are usable.
        monitored_run: Subject of the run; None while it is not known.
        payload: The fields of the event that started the run, which may be invalid.
        flow_run: Id of the flow run, or of an attempt that had none.
    """

    options: MonitoringOptions
    monitored_run: MonitoredRun | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)
    flow_run: str = field(default_factory=lambda: str(flow_run.id or uuid.uuid4()))
    started: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))

    @property
    def name(self) -> str:
        """The name of the evaluation; empty while it is not known."""
        return "" if self.monitored_run is None else self.monitored_run.name

    @property
    def book(self) -> IncidentBook:
        """The incidents of the evaluation."""
        return IncidentBook(self.options.history, self.name, self.flow_run)

    def report(self, incidents: OutcomeIncidents, alert: Alert | None = None) -> Sent:
        """Write the incidents and send an alert about them, or else what could not be sent earlier.

        Args:
            alert: The alert; None without news.
        """
        outbox = Outbox(self.options.deploy.alerts, self.options.history, self.name)
        book = None if self.monitored_run is None else self.book
        changes = NO_CHANGES if book is None else book.changes(incidents)
        sent = outbox.resend(changes) if alert is None else outbox.send(alert, changes)
        if book is not None:
            book.keep(incidents if sent.is_received else incidents.model_copy(update={"opened": ()}))
        return sent

    @contextmanager
    def reporting_errors(self) -> Iterator[None]:
        """Report an error in the block, and raise it again with notes on the delivery of the report."""
        try:
            yield
        except Exception as error:
            if not is_unavailable(error):  # the run is resumed, and could not reach its recipients anyway
                self.report_error(error)
            raise

    def report_error(self, error: Exception) -> None:
        """Report an error that ended the run, or that kept it from beginning.

        An error is reported once, until a run is finished or another error takes its place; errors of a version of an
        index are always reported. Notes on the delivery are added to the error.
        """
        # An AssayError is written for users; other messages may contain secrets, so only their type is sent.
        reason = str(error) if isinstance(error, AssayError) else f"{type(error).__name__}; the log of the run has more"
        folder = Path(error.folder) if isinstance(error, FailedCellsError) else None
        incidents = OutcomeIncidents()
        if self.monitored_run is not None:
            key = error_key(error, reason)
            run_id = self.flow_run if folder is None else ""
            now = datetime.now(UTC)  # after the evaluation has begun, whose entry the history may have by another id
            incident = OutcomeIncident(key=key, kind="error", sentence=reason, since=now, run_id=run_id)
            known = self.book.read()
            replaced = {each.key for each in known if each.kind == "error"} - {key}
            incidents = change_incidents(known, [incident], lambda _open: False, replaced)
        else:
            incident = OutcomeIncident(key="error", kind="error", sentence=reason, since=datetime.now(UTC))
            incidents = OutcomeIncidents(opened=(incident,))
        is_news = bool(incidents.opened) or self.monitored_run is None or bool(self.monitored_run.index)
        alert = self._error_alert(incidents, folder, *(() if incidents.opened else (reason,)))
        sent = self.report(incidents, alert if is_news else None)
        self._record_failure(reason, sent.undelivered)
        unsent = () if folder is None else self.send_results(folder)
        if sent.is_silenced:
            error.add_note(SILENCED)
        elif is_news and not recipients_of(self.options.deploy.alerts):
            error.add_note(NO_RECIPIENT)
        elif not sent.undelivered:
            error.add_note(REPORTED if is_news else REPORTED_BEFORE)
        for sentence in sent.undelivered:
            error.add_note(f"{NOT_DELIVERED}{sentence}")
        for warning in unsent:
            error.add_note(warning)

    def beat(self, undelivered: tuple[str, ...]) -> tuple[str, ...]:
        """Call the heartbeat monitor after a run that has finished, unless a message about it was not delivered.

        Runs for an event do not count: they come whether or not the schedule works.

        Args:
            undelivered: Sentences on recipients that have not accepted a message.

        Returns:
            These sentences, and one on the heartbeat monitor if it could not be called.
        """
        address = self.options.deploy.heartbeat
        if address is None or self.monitored_run is None or self.monitored_run.trigger == "event" or undelivered:
            return undelivered
        warning = call_heartbeat(address, self.name, self.flow_run)
        if warning is None:
            return undelivered
        run_logger().warning(warning)
        return (warning,)

    def send_results(self, folder: Path) -> tuple[str, ...]:
        """Send the results of the run to its sinks, and return a warning for each that lacks some."""
        warnings = send_results(self.options, folder)
        for warning in warnings:
            run_logger().warning(warning)
        return warnings

    def _error_alert(self, incidents: OutcomeIncidents, folder: Path | None, *notes: str) -> Alert:
        about = (
            self.payload
            if self.monitored_run is None
            else {"index": self.monitored_run.index, "version": self.monitored_run.version}
        )
        has_index = self.monitored_run is None or bool(self.monitored_run.index)
        return Alert(
            name=self.name,
            index=show_value(about.get("index")) if has_index else "",
            version=show_value(about.get("version")),
            outcome="error",
            incidents=alert_incidents(
                self.name or f"index {show_value(about.get('index'))}", incidents, with_continuing=False
            ),
            notes=notes,
            folder=None if folder is None else str(folder),
            report=None if folder is None else self.options.deploy.alerts.link_to(folder, REPORT),
            flow_run=self.flow_run,
        )

    def _record_failure(self, reason: str, undelivered: tuple[str, ...]) -> None:
        if self.monitored_run is None:
            return
        run = RecordedRun.without_results(
            self.flow_run,
            self.name,
            self.started,
            "failed",
            reason,
            self.monitored_run.trigger,
            self.monitored_run.start.due,
        )
        details = RunDetails(undelivered=undelivered) if undelivered else RunDetails()
        run = replace(run, source=self.monitored_run.dataset, details=details)
        unrecorded = record_without_results(self.options, run)
        for warning in (*unrecorded, *write_metrics_file(self.options, self.name, self.monitored_run.subject, None)):
            run_logger().warning(warning)


def report_refused(parameters: dict[str, Any], error: Exception) -> NoReturn:
    """Report a run for an event whose parameters cannot be used, and raise the error.

    Args:
        parameters: Parameters of the flow: `config`, or only the recipients, `alerts`.
    """
    event = parameters.get("event")
    payload = event.get("payload") if isinstance(event, Mapping) else parameters
    explained = explain_refusal(parameters, error)
    fields = payload if isinstance(payload, Mapping) else {}
    Reporter(options=usable_options(parameters), payload=fields).report_error(explained)
    if explained is error:
        raise error
    raise explained from error


def usable_options(parameters: Mapping[str, object]) -> MonitoringOptions:
    """Return the options for reporting a run, from the parameters of its flow, which may be invalid.

    Args:
        parameters: Parameters of the flow: `config`, or only the recipients, `alerts`.
    """
    config = parameters.get("config")
    if isinstance(config, MonitoringOptions):
        return narrow(config, MonitoringOptions)
    content = config if isinstance(config, Mapping) else {"deploy": {"alerts": parameters.get("alerts")}}
    return reporting_options(content)


def explain_refusal(parameters: Mapping[str, object], error: Exception) -> Exception:
    """Return the error for which the parameters of a run were refused, worded for users if possible."""
    config = parameters.get("config")
    if isinstance(error, AssayError) or not isinstance(config, Mapping):
        return error
    try:
        check_options(config, "of the deployment")
    except ConfigError as explained:
        return explained
    return error
