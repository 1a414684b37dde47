"""Find what is wrong around a scheduled run: its data, and the runs before it that did not take place."""

from pathlib import Path

from prefect.logging import get_run_logger

from flows.config.run_config import RunConfig
from flows.monitoring.missed_runs import find_missed_runs
from flows.monitoring.source_checks import find_source_incidents
from flows.monitoring.watched import Watched
from metric_core.errors import AssayError
from tasks.history.catalogue import Catalogue
from tasks.history.recorded_run import STARTED
from tasks.runs.outcome import OutcomeIncident

_RUNS = 400
"""Runs of the history that are looked at: a year of nights."""


def find_night_incidents(config: RunConfig, watched: Watched, folder: Path, run_id: str) -> list[OutcomeIncident]:
    """Return what is wrong with the data of a scheduled run, and which runs before it were missed.

    Nothing is said of a run that an event or a person started: that its data are the same may be what is wanted.

    Args:
        config: Configuration of the run.
        watched: Subject of the run.
        folder: Run folder.
        run_id: Id of the run.
    """
    if watched.trigger != "schedule":
        return []
    try:
        runs = Catalogue(config.history).runs(watched.name, last=_RUNS, statuses=STARTED)
        found = find_source_incidents(config, folder, runs, watched.announced)
    except AssayError as error:
        get_run_logger().warning("unchanged data and missed runs are not looked for: %s", error, exc_info=False)
        return []
    missed = find_missed_runs(runs)
    return found if missed is None else [*found, missed.incident(run_id)]
