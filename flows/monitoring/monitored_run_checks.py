"""Find what is wrong around a monitored run: its data, its judges, and scheduled runs that did not take place."""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
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
from tasks.history.catalogue import Catalogue
from tasks.history.recorded_run import MISSED, STARTED, RecordedRun
from tasks.history.run_entry import read_run_entry
from tasks.prefect_support.run_log import run_logger
from tasks.record.outcome import OutcomeIncident
from tasks.record.repeats import AnchorRecord
from tasks.runs.finished_run import FinishedRun
from tasks.runs.judge_drift import find_changed_judges

_LEAST_COLLAPSED = 3.0
"""Least number of rows whose scores became the extreme one, so that it is not chance."""

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
    patience = timedelta(minutes=options.deploy.late_minutes)
    known = keep_past([*absent, *runs], present(monitored_run))
    missed = find_missed_runs(known, patience) if is_scheduled else None
    if missed is None:
        return found
    for warning in record_without_results(options, *missed.entries(monitored_run.name)):
        run_logger().warning(warning)
    told = missed.incident(run.run_id)
    return found if told is None else [*found, told]


def find_judge_incidents(folder: Path, run_id: str, runs: Sequence[RecordedRun]) -> list[OutcomeIncident]:
    """Return the judges that have changed, by the anchor rows that were asked about again, as incidents.

    A judge that is known to be another one, was therefore asked about the whole anchor again, and gives all of it one
    extreme score, is an incident too.

    Args:
        run_id: Id of the run.
        runs: Earlier runs of the evaluation, oldest first.

    Raises:
        RunFolderError: The run folder is damaged.
    """
    record = FinishedRun(folder).record
    changed = [
        OutcomeIncident(
            key=f"judge:{each.judge}",
            kind="judge",
            sentence=each.change.sentence,
            since=datetime.fromisoformat(each.change.since),
            run_id=run_id,
        )
        for each in find_changed_judges(record.repeat)
        if each.change is not None
    ]
    return changed or list(_find_collapsed(record.anchor, run_id, runs))


def _find_collapsed(anchor: AnchorRecord | None, run_id: str, runs: Sequence[RecordedRun]) -> Iterator[OutcomeIncident]:
    """Yield an incident for each metric by which all anchor rows have the same score, though they had others before."""
    if anchor is None:
        return
    earlier = [run.details.anchor for run in runs]
    same = [each.metrics for each in earlier if each is not None and each.digest == anchor.digest]
    for metric, now in anchor.metrics.items():
        means = [metrics[metric].mean for metrics in same if metric in metrics]
        usual = next((mean for mean in reversed(means) if mean not in (None, 0.0, 1.0)), None)
        if now.mean is None or now.mean not in (0.0, 1.0) or usual is None:
            continue
        if abs(usual - now.mean) * now.scored >= _LEAST_COLLAPSED:
            sentence = (
                f"the judge gives all {now.scored} rows of the anchor the same {metric}, {now.mean:g}, where "
                f"their mean was {usual:.3f}: its scores say nothing about the system. Look at the server of the "
                "judge; do not accept this run"
            )
            yield OutcomeIncident(
                key=f"judge:{metric}", kind="judge", sentence=sentence, since=datetime.now(UTC), run_id=run_id
            )
