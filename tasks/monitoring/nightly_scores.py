"""Read how the last runs of an evaluation differ from its accepted baseline, row by row, for alarms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from metric_core.errors import ConfigError
from metric_core.records import Direction, Score
from metric_core.statistics.bounded_means import Bounds
from metric_core.statistics.nights import Panel, find_slice_rows, number_groups
from metric_core.statistics.paired_tests import mcnemar_mid_p
from metric_core.statistics.resampling import LEVEL, Floats
from metric_core.statistics.slices import RowSlices
from tasks.comparison.run_pair import Matching, RunPair, RunRows
from tasks.options.slicing_options import MAX_SLICES
from tasks.runs.finished_run import FinishedRun
from tasks.runs.row_slicing import read_slices

_NO_DIRECTION = "neither a higher nor a lower value is better"
_NO_BOUNDS = "its values have no bounds, and no number of rows could show a drop for certain"
_NO_VALUES = "no row of the baseline has a value"


def read_nights(
    baseline: FinishedRun,
    runs: Sequence[FinishedRun],
    matching: Matching,
    slices: Sequence[str] = (),
    most_slices: int = MAX_SLICES,
) -> Panel:
    """Return the improvements of the baseline's rows in later runs.

    Rows that the baseline lacks are not watched. If one run lacks more scores than the other by more than chance, rows
    without a score in one of them count as favorably as they could be, so that scores that are missing raise no alarm.

    Args:
        baseline: Accepted run.
        runs: Runs since it became the baseline, oldest first; the last `NIGHTS_READ` are enough.
        matching: Columns by which rows are matched and grouped.
        slices: Columns whose values divide the rows into slices.
        most_slices: Maximum number of slices of a column.

    Raises:
        ConfigError: The rows of the last run cannot be matched with those of the baseline, or those of the baseline
            cannot be matched, grouped or sliced by these columns. Earlier runs that cannot be matched are left out.
        RunFolderError: A run folder cannot be read.
    """
    before = RunRows.from_run(baseline, matching)
    cells = before.cells()
    watched, unwatched = _choose_metrics(baseline, cells)
    rows = sorted(before.keys.values())
    nights: list[datetime] = []
    improvements: list[Floats] = []
    favorable: list[Floats] = []
    for run in runs:
        after = _match_rows(baseline, run, matching, before, is_last=run is runs[-1])
        if after is None:
            continue
        scores = after.cells()
        compared = [_compare(metric, cells.get(metric.key, {}), scores.get(metric.key, {}), rows) for metric in watched]
        nights.append(datetime.fromisoformat(run.manifest["created"]))
        improvements.append(np.array([better for better, _ in compared]).reshape(-1, len(rows)).T)
        favorable.append(np.array([possible for _, possible in compared]).reshape(-1, len(rows)).T)
    shape = (len(nights), len(rows), len(watched))
    return Panel(
        metrics=tuple(metric.key for metric in watched),
        ranges={metric.key: metric.range for metric in watched},
        nights=tuple(nights),
        improvements=np.array(improvements).reshape(shape),
        favorable=np.array(favorable).reshape(shape),
        groups=None if matching.by is None else number_groups([before.groups.get(row) for row in rows]),
        slices=tuple(
            part
            for divided in read_slices(baseline.samples(), slices, most_slices)
            for part in find_slice_rows(_rename(divided, before.keys), rows)
        ),
        lower_is_better=frozenset(metric.key for metric in watched if metric.sign < 0),
        unwatched=unwatched,
    )


@dataclass(frozen=True, slots=True)
class _Metric:
    """A metric that is watched.

    Args:
        key: Key of the metric.
        sign: 1 if a higher value is better, -1 if a lower value is.
        bounds: Bounds per scale; None stands for the metric's only scale.
    """

    key: str
    sign: int
    bounds: Mapping[str | None, Bounds]

    @property
    def range(self) -> float:
        """Greatest value minus least; 1 if rows have different scales."""
        widths = [bounds.high - bounds.low for bounds in self.bounds.values()]
        return widths[0] if len(widths) == 1 else 1.0

    def quality(self, cell: Score | None) -> float | None:
        """Return how good a cell is, from 0 to 1; None without a value. Values beyond the bounds count as the bound."""
        if cell is None or cell.value is None or (bounds := self.bounds.get(cell.label)) is None:
            return None
        place = min(1.0, max(0.0, (cell.value - bounds.low) / (bounds.high - bounds.low)))
        return place if self.sign > 0 else 1.0 - place


def _choose_metrics(
    baseline: FinishedRun, cells: Mapping[str, Mapping[str, Score]]
) -> tuple[list[_Metric], dict[str, str]]:
    watched: list[_Metric] = []
    unwatched: dict[str, str] = {}
    for entry in baseline.manifest["metrics"]:
        metric = _read_metric(entry, cells.get(entry["key"], {}))
        if isinstance(metric, str):
            unwatched[entry["key"]] = metric
        else:
            watched.append(metric)
    return watched, unwatched


def _read_metric(entry: Mapping[str, Any], cells: Mapping[str, Score]) -> _Metric | str:
    """Return a metric, or the reason why it is not watched."""
    direction = Direction(entry["direction"])
    if direction is Direction.NEITHER:
        return _NO_DIRECTION
    scales = {cell.label for cell in cells.values() if cell.value is not None}
    if not scales:
        return _NO_VALUES
    bounds = {scale: Bounds.of_metric(entry.get("bounds"), scale) for scale in sorted(scales, key=str)}
    known = {scale: found for scale, found in bounds.items() if found is not None}
    if not known:
        return _NO_BOUNDS
    return _Metric(entry["key"], -1 if direction is Direction.LOWER else 1, known)


def _match_rows(
    baseline: FinishedRun, run: FinishedRun, matching: Matching, before: RunRows, *, is_last: bool
) -> RunRows | None:
    """Return the rows of a run; None if they cannot be matched with the baseline's.

    Raises:
        ConfigError: They cannot, and the run is the last one.
    """
    if is_last:
        return RunPair.from_runs(baseline, run, replace(matching, by=None)).b
    try:
        rows = RunRows.from_run(run, replace(matching, by=None))
    except ConfigError:
        return None
    return None if set(before.keys.values()).isdisjoint(rows.keys.values()) else rows


def _compare(
    metric: _Metric, before: Mapping[str, Score], after: Mapping[str, Score], rows: Sequence[str]
) -> tuple[list[float], list[float]]:
    """Return the improvements of a metric's rows, and the greatest possible ones where a score is missing."""
    improvements, favorable = [np.nan] * len(rows), [np.nan] * len(rows)
    only_before = only_after = 0
    for place, row in enumerate(rows):
        old, new = metric.quality(before.get(row)), metric.quality(after.get(row))
        if old is not None and new is not None:
            improvements[place] = new - old if before[row].label == after[row].label else np.nan
        elif old is not None and row in after:
            favorable[place], only_before = 1.0 - old, only_before + 1
        elif new is not None and row in before:
            favorable[place], only_after = new, only_after + 1
    if mcnemar_mid_p(only_before, only_after) > 1 - LEVEL:
        favorable = [np.nan] * len(rows)
    return improvements, favorable


def _rename(slices: RowSlices, names: Mapping[str, str]) -> RowSlices:
    """Return slices by the names under which rows are matched."""
    return replace(slices, values={names[row_id]: value for row_id, value in slices.values.items()})
