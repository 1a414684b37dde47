"""Write the figures of a run in the text format of Prometheus, for node_exporter's textfile collector.

The file of a run that could not be finished has no figures of a result, so that none stays that is old; it says that
the run failed, and when the last one with a result ended. Labels hold names only, no text from the data, because
everyone who can see the monitoring can read them.
"""

import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from flows.config.result_options import MonitoringOptions, ResultOptions
from flows.publishing.run_subject import RunSubject
from metric_core.errors import AssayError, RunFolderError
from tasks.findings.finding import RunRecords
from tasks.findings.table import figures_of
from tasks.history.catalogue import Catalogue
from tasks.history.message_log import MessageLog
from tasks.history.recorded_run import COMPLETED
from tasks.history.run_entry import evaluation_name
from tasks.history.standings import read_standings
from tasks.prefect_support.patience import is_unavailable
from tasks.runs.run_folder import SUMMARY, RunFolder
from tasks.runtime.atomic_files import write_output

_RUN_FAILED = "1 if the latest run could not be finished, or too many cells of a metric failed, else 0."
_STATES = ("scored", "undefined", "failed")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._]+")
_NO_NAME = "none"
_RUNS_READ = 100
"""Completed runs of the history among which the last one with a result is looked for."""
_logger = logging.getLogger(__name__)


def write_metrics_file(
    options: ResultOptions, name: str, subject: RunSubject, folder: RunFolder | None
) -> tuple[str, ...]:
    """Write the metrics file of a run if its options name one; readers find the whole file or the earlier one.

    The history is read for availability, incidents and the last result, so the run is recorded there before.

    Args:
        options: Options of the results, with the path of the file and the address of the history.
        subject: Subject of the run, for labels and placeholders.
        folder: The run folder; None if the run could not be finished.

    Returns:
        Warnings if the file cannot be written, or the history cannot be read: the results are in the run folder all the
        same.
    """
    if options.metrics_file is None:
        return ()
    gauges = _Gauges(subject)
    succeeded: float | None = None
    ended = time.time()
    if folder is None:
        gauges.set("run_failed", _RUN_FAILED, 1)
    else:
        record, ended = folder.read_finished_record(), _finished(folder)
        _set_result(gauges, RunRecords(record, folder.read_summary(), folder.path), ended)
        succeeded = None if record.failures else ended
    gauges.set("last_run_timestamp_seconds", "Time at which the latest run ended, with a result or without.", ended)
    warnings = []
    try:
        _set_history(gauges, options.history, name, succeeded)
    except AssayError as error:
        warnings.append(f"the metrics file has no figures of the history. {error}")
    path = metrics_path(options.metrics_file, subject)
    try:
        write_output(path, generate_latest(gauges.registry).decode(), "the metrics file")
    except RunFolderError as error:
        warnings.append(str(error))
    return tuple(warnings)


@contextmanager
def failure_in_metrics_file(options: MonitoringOptions, subject: RunSubject) -> Iterator[None]:
    """Write the metrics file of a run that could not be finished if the block fails."""
    try:
        yield
    except Exception as error:
        if not is_unavailable(error):  # otherwise the run is resumed
            name = evaluation_name(options.name, subject.name, options.source)
            for warning in write_metrics_file(options, name, subject, None):
                _logger.warning(warning)
        raise


def describe_figures(folder: Path) -> bytes:
    """Return the figures of a finished run in the text format of Prometheus.

    Raises:
        RunFolderError: The folder does not hold a finished run.
    """
    run = RunFolder(folder)
    record = run.read_finished_record()
    gauges = _Gauges(RunSubject.of_record(record.deployment))
    _set_result(gauges, RunRecords(record, run.read_summary(), run.path), _finished(run))
    return generate_latest(gauges.registry)


def metrics_path(file: str, subject: RunSubject) -> Path:
    """Return the path of a metrics file, without placeholders.

    Args:
        file: Path with placeholders.

    >>> str(metrics_path("/metrics/assay-{deployment}-{index}.prom", RunSubject("evaluate-handbook", "the handbook/2")))
    '/metrics/assay-evaluate-handbook-the-handbook-2.prom'
    >>> metrics_path("/metrics/{deployment}.prom", RunSubject()).name
    'none.prom'
    """
    path = Path(file).expanduser().absolute()
    names = {"deployment": subject.name, "index": subject.index}
    texts = {name: _NOT_IN_NAMES.sub("-", text).strip("-.") or _NO_NAME for name, text in names.items()}
    return path.with_name(path.name.format(**texts))


def _finished(folder: RunFolder) -> float:
    """Return the time at which a run finished, in seconds since 1970."""
    return (folder.path / SUMMARY).stat().st_mtime


def _set_history(gauges: "_Gauges", address: str | None, name: str, succeeded: float | None) -> None:
    """Set the figures of an evaluation in the history.

    Args:
        succeeded: Time at which this run ended with a result; None if it did not.
    """
    history = Catalogue(address)
    if succeeded is None:
        runs = history.runs(name, last=_RUNS_READ, statuses=(COMPLETED,), metrics=False)
        found = [run.created.timestamp() + (run.cost.seconds or 0) for run in runs if run.has_result]
        succeeded = found[-1] if found else None
    text = "Time at which the latest run with a result ended."
    gauges.set("last_success_timestamp_seconds", text, succeeded)
    gauges.set("open_incidents", "Incidents that are not over.", len(history.open_incidents(name)))
    waiting = sum(each.count for each in MessageLog(address).find_undelivered(name))
    gauges.set("undelivered_messages", "Messages that no recipient has accepted yet.", waiting)
    for each in history.availability(name):
        window = f"{each.days}d"
        for state, count in (("finished", each.finished), ("failed", each.failed), ("missed", each.missed)):
            gauges.set("scheduled_runs", "Scheduled runs that were due.", count, window=window, state=state)
        gauges.set("availability", "Share of the scheduled runs that have a result.", each.share, window=window)
    for figure in (figure for standing in read_standings(history, name) for figure in standing.figures):
        gauges.set(figure.name, figure.description, figure.value, **figure.labels)


def _set_result(gauges: "_Gauges", run: RunRecords, finished: float) -> None:
    """Set the figures of a finished run.

    Args:
        finished: Time at which the run finished, in seconds since 1970.
    """
    record, summary = run.record, run.summary
    gauges.set("rows", "Rows that were evaluated.", summary.rows)
    gauges.set("bad_rows", "Rows that were left out because they are bad.", record.bad_row_count)
    gauges.set("run_seconds", "Wall time of the run before its report was written.", record.seconds)
    gauges.set("run_finished_timestamp_seconds", "Time at which the run finished, since 1970.", finished)
    gauges.set("run_failed", _RUN_FAILED, int(bool(record.failures)))
    for metric in summary.metrics:
        key, distribution = metric.metric, metric.distribution
        for state in _STATES:
            gauges.set("cells", "Cells by metric and state.", getattr(metric, state), metric=key, state=state)
        mean = None if distribution is None else distribution.mean
        interval = None if distribution is None else distribution.interval
        low, high = (None, None) if interval is None else (interval.low, interval.high)
        gauges.set("mean", "Mean score.", mean, metric=key)
        gauges.set("mean_low", "Lower end of the interval of the mean.", low, metric=key)
        gauges.set("mean_high", "Upper end of the interval of the mean.", high, metric=key)
    for stage, work in record.stages.items():
        gauges.set("questions", "Distinct questions to the models.", work.questions, stage=stage)
        gauges.set("cached_questions", "Questions whose answers were cached.", work.stored, stage=stage)
        gauges.set("requests", "Requests sent to servers, with retries.", work.requests, stage=stage)
        for kind, tokens in (("prompt", work.prompt_tokens), ("output", work.output_tokens)):
            gauges.set("tokens", "Tokens sent and generated.", tokens, stage=stage, kind=kind)
    for figure in figures_of(run):
        gauges.set(figure.name, figure.description, figure.value, **figure.labels)


class _Gauges:
    """Gauges in a separate registry, all with the labels of the subject."""

    def __init__(self, subject: RunSubject) -> None:
        self.registry = CollectorRegistry()
        self._subject = {"deployment": subject.name, "index": subject.index}
        self._gauges: dict[str, Gauge] = {}

    def set(self, name: str, description: str, value: float | None, **labels: str) -> None:
        """Set a value; a figure that the run does not have is left out."""
        if value is None:
            return
        labels = {**self._subject, **labels}
        if name not in self._gauges:
            self._gauges[name] = Gauge(f"assay_{name}", description, list(labels), registry=self.registry)
        self._gauges[name].labels(**labels).set(value)
