"""Read the scores of the runs before a baseline, for the intervals of a comparison with it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from metric_core.errors import AssayError, ConfigError
from metric_core.statistics.pairs import ScoreColumns
from tasks.comparison.run_differences import find_measurement_changes
from tasks.comparison.run_pair import Matching, RunPair, RunRows
from tasks.history.catalogue import Catalogue
from tasks.history.open_alarms import open_runs
from tasks.history.recorded_run import COMPLETED, INDEX, SYSTEM, RecordedRun
from tasks.runs.finished_run import FinishedRun

_RUNS_READ, _RUNS_USED = 100, 9


def add_earlier_runs(columns: Sequence[ScoreColumns], pair: RunPair, match: str | None) -> list[ScoreColumns]:
    """Return the columns with the cells of up to nine runs before the first run, from the history of the second.

    Only runs that should differ from the first one by chance are read: of the same version of the index and of the
    system, with the same measurement. If the second run has another version, a change is expected and nothing before it
    says how large: no run is read. Without a history that can be read, there are none.

    Args:
        match: Column by which rows are matched; None means their ids.
    """
    if pair.a is None:
        return list(columns)
    found = [rows.cells() for rows in _read_rows(pair.a.run, pair.b.run, Matching(match))]
    return [replace(column, earlier=[cells.get(column.metric, {}) for cells in found]) for column in columns]


def _read_rows(before: FinishedRun, after: FinishedRun, matching: Matching) -> list[RunRows]:
    name, history = after.record.name, after.record.config.history
    try:
        recorded = Catalogue(history).runs(name, last=_RUNS_READ, statuses=(COMPLETED,), metrics=False) if name else []
    except AssayError:
        return []
    rows = []
    for run in open_runs(_select_alike(recorded, before.run_id, after.run_id)[-_RUNS_USED:], []):
        try:
            if not find_measurement_changes(run, before):
                rows.append(RunRows.from_run(run, matching))
        except ConfigError:  # its rows cannot be matched
            continue
    return rows


def _select_alike(recorded: Sequence[RecordedRun], before: str, after: str) -> list[RecordedRun]:
    """Return the runs before the first one that had the versions of the index and of the system that both runs have.

    A run that names no version had that of the run before it.

    Args:
        recorded: Runs of the evaluation, oldest first.
        before: Id of the run that is compared with.
        after: Id of the run that is compared.
    """
    known: tuple[Any, ...] = (None, None)
    versions = {}
    for run in recorded:
        known = tuple(run.versions.get(key) or version for key, version in zip((SYSTEM, INDEX), known, strict=True))
        versions[run.run_id] = known
    names = list(versions)
    if before not in versions or after not in versions or versions[before] != versions[after]:
        return []
    return [run for run in recorded[: names.index(before)] if versions[run.run_id] == versions[before]]
