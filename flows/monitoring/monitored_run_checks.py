"""Find what is wrong around a monitored run: its data, its judges, and scheduled runs that did not take place."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from flows.config.result_options import MonitoringOptions
from flows.monitoring.clock_checks import keep_past, present
from flows.monitoring.gating import GatedRun
from flows.monitoring.growth import find_growth_incidents
from flows.monitoring.missed_runs import find_missed_runs
from flows.monitoring.monitored_run import MonitoredRun
from flows.monitoring.source_checks import UNCHANGED, find_loss_incidents, find_source_incidents
from flows.publishing.history_record import record_without_results
from metric_core.errors import AssayError
from tasks.findings.table import find_in, standings_of
from tasks.history.catalogue import Catalogue
from tasks.history.recorded_run import MISSED, STARTED, RecordedRun
from tasks.history.run_entry import read_run_entry
from tasks.prefect_support.run_log import run_logger
from tasks.record.outcome import OutcomeIncident, RunOutcome
from tasks.runs.finished_run import FinishedRun

_RUNS = 400
"""Number of runs of the history to read: a year of daily runs."""


def find_run_incidents(
    options: MonitoringOptions, monitored_run: MonitoredRun, folder: Path, gated: GatedRun, open_keys: Collection[str]
) -> list[OutcomeIncident]:
    """Return what is wrong with the data of a run, and which scheduled runs before it were missed.

    Unchanged data are not an incident of a run that an event or a person started, because they may be intended; but an
    open incident continues.
    """
    is_scheduled = monitored_run.trigger == "schedule"
    runs: list[RecordedRun] = []
    absent: list[RecordedRun] = []  # apart, or many of them would crowd out the others
    history = Catalogue(options.history)
    try:
        runs = history.runs(monitored_run.name, last=_RUNS, statuses=STARTED)
        if is_scheduled:
            absent = history.runs(monitored_run.name, last=_RUNS, statuses=(MISSED,), metrics=False)
    except AssayError as error:
        run_logger().warning("unchanged data and missed runs are not looked for: %s", error, exc_info=False)
    run = read_run_entry(folder)
    stays = not monitored_run.index and options.deploy.accept == "first"
    earlier = [each for each in runs if stays and each.run_id != run.run_id and each.created <= run.created]
    found = find_source_incidents(run, runs, monitored_run.announced, options.deploy.stale_days)
    found = [each for each in found if is_scheduled or each.key != UNCHANGED or UNCHANGED in open_keys]
    found += find_loss_incidents(gated.kept, gated.least_kept, run, gated.same_baseline(earlier), open_keys)
    before = [each for each in keep_past(runs, present(monitored_run)) if each.run_id != run.run_id]
    found += find_growth_incidents(run, before, options.deploy.growth)
    found += _find_spent_budgets([*before, *absent], run, monitored_run)
    patience = timedelta(minutes=options.deploy.late_minutes)
    known = keep_past([*absent, *runs], present(monitored_run))
    missed = find_missed_runs(known, patience) if is_scheduled else None
    if missed is None:
        return found
    for warning in record_without_results(options, *missed.entries(monitored_run.name)):
        run_logger().warning(warning)
    told = missed.incident(run.run_id)
    return found if told is None else [*found, told]


def _find_spent_budgets(
    before: Sequence[RecordedRun], run: RecordedRun, monitored_run: MonitoredRun
) -> list[OutcomeIncident]:
    """Return what several runs together show to be wrong, with this one as the last."""
    now = present(monitored_run)
    run = replace(run, outcome=run.outcome or RunOutcome(name=monitored_run.name, trigger=monitored_run.trigger))
    runs = sorted([*before, run], key=lambda each: each.created)
    return [
        OutcomeIncident(key=each.key, kind="objective", sentence=each.problem, since=run.created, run_id=run.run_id)
        for each in standings_of(runs, now)
        if each.problem
    ]


def find_judge_incidents(folder: Path, runs: Sequence[RecordedRun]) -> list[OutcomeIncident]:
    """Return what findings of a run show of its judges, as incidents.

    Args:
        runs: Earlier runs of the evaluation, oldest first.

    Raises:
        RunFolderError: The run folder is damaged.
    """
    record, earlier = FinishedRun(folder).record, [run.details for run in runs]
    found = (each.on_judge.incidents for each in find_in((record,)))
    return [incident for find in found if find is not None for incident in find(record, earlier)]
