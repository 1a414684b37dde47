"""Read how far the scores of rows changed in earlier runs of an evaluation, for the intervals of a comparison.

An interval has to allow for changes of rows that it has not seen, as large as the range of the metric. Where all
changes are small, this makes it too wide, and only earlier runs can show that larger ones hardly occur.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from metric_core.errors import AssayError, ConfigError
from metric_core.records import Score
from metric_core.statistics.bounded_means import LEAST_UNITS, Bounds
from metric_core.statistics.pairs import EarlierChanges, ScoreColumns
from tasks.comparison.run_pair import Matching, RunPair, RunRows
from tasks.history.open_alarms import open_runs
from tasks.history.recorded_run import COMPLETED
from tasks.runs.finished_run import FinishedRun

_RUNS_READ, _RUNS_COMPARED = 100, 10
_MOST_ROWS = 2000
"""Number of rows from which on an unseen row hardly widens an interval."""
_DECIMALS = 6


def add_earlier_changes(columns: Sequence[ScoreColumns], pair: RunPair, match: str | None) -> list[ScoreColumns]:
    """Return the columns with the changes of their rows in earlier runs, where they could narrow an interval.

    Earlier runs are the last ones before the second run in its history, which has to have it, too. They are compared
    with the first run. Without a history that can be read, nothing is known.

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

    name, history = after.manifest.get("name"), after.config.get("history")
    try:
        recorded = Catalogue(history).runs(name, last=_RUNS_READ, statuses=(COMPLETED,), metrics=False) if name else []
        place = next((place for place, run in enumerate(recorded) if run.run_id == after.run_id), 0)
        earlier = [run for run in recorded[:place] if run.run_id != before.run_id]
    except AssayError:
        return []
    rows = []
    for run in open_runs(earlier[-_RUNS_COMPARED:], []):
        try:
            rows.append(RunRows.from_run(run, matching))
        except ConfigError:  # its rows cannot be matched
            continue
    return rows
