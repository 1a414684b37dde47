"""Read the scores of the runs before a baseline, for the intervals of a comparison with it."""

from collections.abc import Sequence
from dataclasses import replace

from metric_core.errors import ConfigError
from metric_core.statistics.pairs import ScoreColumns
from tasks.comparison.run_differences import find_measurement_changes
from tasks.comparison.run_pair import Matching, RunPair, RunRows
from tasks.history.open_alarms import open_runs
from tasks.history.recorded_run import INDEX, SYSTEM, RecordedRun
from tasks.history.runs_before import RunsBefore

_RUNS_USED = 9


def add_earlier_runs(
    columns: Sequence[ScoreColumns], pair: RunPair, match: str | None, before: RunsBefore
) -> list[ScoreColumns]:
    """Return the columns with the cells of up to nine runs before the first run.

    Only runs that should differ from the first one by chance are read: of the same version of the index and of the
    system, with the same measurement. If the second run has another version, a change is expected and nothing before it
    says how large: no run is read.

    Args:
        match: Column by which rows are matched; None means their ids.
        before: Runs before the second one.
    """
    if pair.a is None:
        return list(columns)
    found = []
    for run in open_runs(_select_alike(before, pair.a.run.run_id)[-_RUNS_USED:], []):
        try:
            if not find_measurement_changes(run, pair.a.run):
                found.append(RunRows.from_run(run, Matching(match)).cells())
        except ConfigError:  # its rows cannot be matched
            continue
    return [replace(column, earlier=[cells.get(column.metric, {}) for cells in found]) for column in columns]


def _select_alike(before: RunsBefore, baseline: str) -> list[RecordedRun]:
    """Return the runs before a baseline that had the versions of the index and of the system that both runs have."""
    place = next((place for place, run in enumerate(before.runs) if run.run_id == baseline), None)
    if place is None or before.run is None:
        return []
    versions = _versions(before.runs[place])
    if versions != _versions(before.run):
        return []
    return [run for run in before.runs[:place] if _versions(run) == versions]


def _versions(run: RecordedRun) -> tuple[object, object]:
    return run.versions.get(SYSTEM), run.versions.get(INDEX)
