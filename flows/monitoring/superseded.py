"""End a run about a version of an index whose baseline is a newer version."""

from datetime import UTC, datetime
from pathlib import Path

from flows.monitoring.chain_result import ChainResult
from flows.monitoring.monitored_run import MonitoredRun
from flows.monitoring.reporter import Reporter
from tasks.record.outcome import OutcomeIncidents
from tasks.runs.baselines import Baseline


def is_superseded(monitored_run: MonitoredRun, before: Baseline | None) -> bool:
    """Return whether a run evaluates an old version of an index: a run about no index is never older than another."""
    if before is None or not monitored_run.index:
        return False
    place = before.place_at(datetime.now(UTC))
    return _is_same_version(monitored_run, before) or place.is_newer_than(monitored_run.place)


def _is_same_version(monitored_run: MonitoredRun, baseline: Baseline) -> bool:
    """Return whether the baseline is of the same event."""
    return baseline.place == monitored_run.place


def end_superseded(
    reporter: Reporter, monitored_run: MonitoredRun, newer: Baseline | None, folder: Path | None = None
) -> ChainResult:
    """Send what could not be sent earlier, and end a run whose version is older than its baseline."""
    return report_superseded(monitored_run, newer, folder, reporter.report(OutcomeIncidents()).undelivered)


def report_superseded(
    monitored_run: MonitoredRun, newer: Baseline | None, folder: Path | None, undelivered: tuple[str, ...]
) -> ChainResult:
    """Return the result of a run whose version is older than its baseline."""
    by = "a newer baseline" if newer is None else f"its baseline, version {newer.version}"
    is_same = newer is not None and _is_same_version(monitored_run, newer)
    what = "its baseline already" if is_same else f"older than {by}"
    return ChainResult(
        verdict="superseded",
        message=f"{monitored_run.title} of index {monitored_run.index} is {what}",
        folder=folder,
        baseline=None if newer is None else newer.version,
        undelivered=undelivered,
    )
