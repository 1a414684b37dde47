"""Read how far the scores of rows changed in earlier runs of an evaluation, for the intervals of a comparison.

An interval has to allow for changes of rows that it has not seen, as large as the range of the metric. Where all
changes are small, this makes it too wide, and only earlier runs can show that larger ones hardly occur.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from metric_core.errors import AssayError, ConfigError
from metric_core.records import Score
from metric_core.statistics.bounded_means import LEAST_UNITS, Bounds
from metric_core.statistics.pairs import EarlierChanges, ScoreColumns
from tasks.comparison.run_pair import Matching, RunPair, RunRows
from tasks.history.open_alarms import open_runs
from tasks.history.recorded_run import COMPLETED, INDEX, SYSTEM, RecordedRun
from tasks.runs.finished_run import FinishedRun

_RUNS_READ, _RUNS_COMPARED = 100, 10
_MOST_ROWS = 2000
"""Number of rows from which on an unseen row hardly widens an interval."""
_DECIMALS = 6


def add_earlier_changes(columns: Sequence[ScoreColumns], pair: RunPair, match: str | None) -> list[ScoreColumns]:
    """Return the columns with the changes of their rows in earlier runs, where they could narrow an interval.

    Earlier runs are the last ones before the second run in its history, which has to have it, too. They are compared
    with the first run. Without a history that can be read, nothing is known. Runs of another version of the index or of
    the system say nothing: after a rebuild, few rows may change much more than any did from night to night.

    Args:
        match: Column by which rows are matched; None means their ids.
    """
    if pair.a is None or len(pair.b.keys) > _MOST_ROWS or not any(map(_changes_little, columns)):
        return list(columns)
    found = [rows.cells() for rows in _read_rows(pair.a.run, pair.b.run, Matching(match))]
    return [
        replace(column, earlier=_find_changes(column.a, [cells.get(column.metric, {}) for cells in found]))
        if found and _changes_little(column)
        else column
        for column in columns
    ]


def _changes_little(column: ScoreColumns) -> bool:
    """Return whether rows of a metric changed, and none by its whole range."""
    bounds, changes = Bounds.of_metric(column.bounds), _changes(column.a, column.b)
    return bounds is not None and len(changes) >= LEAST_UNITS and max(changes.values()) < bounds.high - bounds.low


def _changes(before: Mapping[str, Score], after: Mapping[str, Score]) -> dict[str, float]:
    """Return row -> size of its change, of the rows that changed."""
    values = ((row, before[row].value, cell.value) for row, cell in after.items() if row in before)
    sizes = ((row, abs(b - a)) for row, a, b in values if a is not None and b is not None)
    return {row: round(size, _DECIMALS) for row, size in sizes if size > 10**-_DECIMALS}


def _find_changes(before: Mapping[str, Score], runs: Sequence[Mapping[str, Score]]) -> EarlierChanges | None:
    """Return the changes from one run to others; a cached answer that several of them have changed once."""
    changes = {change for cells in runs for change in _changes(before, cells).items()}
    return EarlierChanges(len(runs), len(changes), max(size for _, size in changes)) if changes else None


def _read_rows(before: FinishedRun, after: FinishedRun, matching: Matching) -> list[RunRows]:
    from tasks.history.catalogue import Catalogue  # noqa: PLC0415 sqlalchemy loads slowly

    name, history = after.record.name, after.record.config.history
    try:
        recorded = Catalogue(history).runs(name, last=_RUNS_READ, statuses=(COMPLETED,), metrics=False) if name else []
    except AssayError:
        return []
    rows = []
    for run in open_runs(_select_alike(recorded, before.run_id, after.run_id)[-_RUNS_COMPARED:], []):
        try:
            rows.append(RunRows.from_run(run, matching))
        except ConfigError:  # its rows cannot be matched
            continue
    return rows


def _select_alike(recorded: Sequence[RecordedRun], before: str, after: str) -> list[RecordedRun]:
    """Return the runs before one that had the versions of the index and of the system that both compared runs had.

    A run that names no version had that of the run before it.

    Args:
        recorded: Runs of the evaluation, oldest first.
        before: Id of the run that is compared with; if it is unknown, it is older than all.
        after: Id of the run that is compared.
    """
    known: tuple[Any, ...] = (None, None)
    versions = {}
    for run in recorded:
        known = tuple(run.versions.get(key) or version for key, version in zip((SYSTEM, INDEX), known, strict=True))
        versions[run.run_id] = known
    place = next((place for place, run in enumerate(recorded) if run.run_id == after), 0)
    wanted = {versions.get(before, (None, None)), *([versions[after]] if after in versions else [])}
    return [run for run in recorded[:place] if run.run_id != before and {versions[run.run_id]} == wanted]
