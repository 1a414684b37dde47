"""Read the runs of an evaluation before one of its runs, or find out why they are not known."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from metric_core.errors import AssayError
from tasks.history.catalogue import Catalogue
from tasks.history.recorded_run import COMPLETED, INDEX, SYSTEM, RecordedRun
from tasks.runs.finished_run import FinishedRun

_RUNS_READ = 100
_RUNS_OF_YEAR = 366 * 24
"""Runs that are read with their metrics: a year of hourly ones."""


@dataclass(frozen=True, slots=True)
class RunsBefore:
    """The finished runs of an evaluation before one of its runs.

    Args:
        runs: The runs, oldest first, each with the versions of the index and of the system that it had: one that
            names none had those of the run before it.
        run: Entry of the run itself; None if they are not known, or it has no name.
        unknown: Sentence on why they are not known; empty if they are.
    """

    runs: tuple[RecordedRun, ...] = ()
    run: RecordedRun | None = None
    unknown: str = ""


def read_runs_before(
    run: FinishedRun, baseline: FinishedRun | None = None, *, of_year: bool = False, is_recorded: bool = True
) -> RunsBefore:
    """Read the runs before a run from its history.

    A history that cannot be read, or lacks the run itself or a baseline that was recorded there, does not say that
    there were none. Without a name a run belongs to no others.

    Args:
        baseline: Run that it is compared with; None without one.
        of_year: True for a year of runs with their metrics, False for the latest ones.
        is_recorded: False for a run that is not recorded yet.
    """
    name = run.record.name
    if not name:
        return RunsBefore()
    recorded = [each for each in (baseline, run if is_recorded else None) if each is not None]
    try:
        history = Catalogue(run.record.config.history)
        if unknown := find_gap(history, run.record.config.history, recorded):
            return RunsBefore(unknown=unknown)
        last = _RUNS_OF_YEAR if of_year else _RUNS_READ
        found = history.runs(name, last=last, before=run.started, statuses=(COMPLETED,), metrics=of_year)
        own = history.run(run.run_id)
    except AssayError as error:
        return RunsBefore(unknown=str(error))
    before = [each for each in found if each.run_id != run.run_id]
    if own is None:
        return RunsBefore(_add_versions(before))
    *runs, known = _add_versions([*before, own])
    return RunsBefore(tuple(runs), known)


def find_gap(history: Catalogue, address: str | None, runs: Iterable[FinishedRun]) -> str:
    """Return a sentence on a run that a history lacks although it was recorded there; empty if it has all of them.

    Args:
        address: The history, as in the option.

    Raises:
        ConfigError: The database cannot be used.
    """
    for run in runs:
        is_recorded = bool(run.record.name) and run.record.config.history == address
        if is_recorded and history.run(run.run_id) is None:
            return (
                f"the history {history.address} lacks the run in {run.folder}, so it was lost, or is another one. "
                "`assay history --rebuild FOLDER` records the runs in a folder again"
            )
    return ""


def _add_versions(runs: Iterable[RecordedRun]) -> tuple[RecordedRun, ...]:
    """Return runs, oldest first, each with the versions of those before it that it does not name."""
    known: dict[str, Any] = {}
    found = []
    for run in runs:
        known |= {key: run.versions[key] for key in (SYSTEM, INDEX) if run.versions.get(key)}
        found.append(replace(run, versions={**run.versions, **known}))
    return tuple(found)
