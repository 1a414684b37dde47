"""Read how the last runs of an evaluation differ from its accepted baseline, row by row, for alarms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import log

import numpy as np

from metric_core.errors import ConfigError
from metric_core.records import Direction, Score
from metric_core.statistics.bounded_means import Bounds
from metric_core.statistics.missing_scores import are_selective
from metric_core.statistics.resampling import Floats
from metric_core.statistics.run_panel import Codes, Panel, find_large_groups, find_slice_rows, number_groups
from tasks.comparison.run_pair import Matching, RunPair, RunRows
from tasks.record.run_record import MetricRecord
from tasks.runs.finished_run import FinishedRun

_NO_DIRECTION = "neither a higher nor a lower value is better"
_NO_BOUNDS = "its values have no bounds, and no number of rows could show a drop for certain"
_NO_VALUES = "no row of the baseline has a value"
_LARGEST_RATIO = 10.0
"""Ratio of two values without a greatest one that counts as the whole range; larger ones count as this. With 4, fewer
doublings of noisy seconds are found in a night, with 100 fewer small changes."""
_NOTHING = 1e-9
"""Value in place of 0 in a ratio."""


def read_monitored_runs(baseline: FinishedRun, runs: Sequence[FinishedRun], matching: Matching) -> Panel:
    """Return the improvements of the baseline's rows in later runs.

    Rows that the baseline lacks are not compared. If one run lacks more scores than the other by more than chance, or
    those of better rows, rows without a score in one of them count as favorably as they could be, so that scores that
    are missing raise no alarm.

    Args:
        runs: Runs since it became the baseline, oldest first; the last `RUNS_READ` are enough.
        matching: Columns by which rows are matched, grouped and divided into slices. Groups and slices are those of the
            last run, so the baseline need not have these columns.

    Raises:
        ConfigError: There is no run, or the rows of the last one cannot be matched with those of the baseline, grouped
            or sliced by these columns. Earlier runs that cannot be matched are left out.
        RunFolderError: A run folder cannot be read.
    """
    if not runs:
        raise ConfigError("there is no run to test: alarms need at least one run since the baseline")
    last = RunPair.from_runs(baseline, runs[-1], matching)
    names = replace(matching, by=None, slices=(), weights=None)
    before = RunRows.from_run(baseline, names)
    cells = before.cells()
    tested, untested = _choose_metrics(baseline, cells)
    rows = sorted(before.keys.values())
    groups = {**_read_groups(baseline, matching), **last.b.groups}
    codes = None if matching.by is None else number_groups([groups.get(row) for row in rows])
    starts: list[datetime] = []
    improvements: list[Floats] = []
    favorable: list[Floats] = []
    for after in (*(_match_rows(run, names, before) for run in runs[:-1]), last.b):
        if after is None:
            continue
        scores = after.cells()
        compared = [
            _compare(metric, cells.get(metric.key, {}), scores.get(metric.key, {}), rows, codes) for metric in tested
        ]
        starts.append(datetime.fromisoformat(after.run.record.created))
        improvements.append(np.array([better for better, _ in compared]).reshape(-1, len(rows)).T)
        favorable.append(np.array([possible for _, possible in compared]).reshape(-1, len(rows)).T)
    slices = [part for divided in last.slices for part in find_slice_rows(divided, rows)]
    if matching.by is not None and matching.by not in matching.slices:
        slices += find_large_groups(matching.by, groups, rows)
    shape = (len(starts), len(rows), len(tested))
    return Panel(
        metrics=tuple(metric.key for metric in tested),
        ranges={metric.key: metric.range for metric in tested},
        runs=tuple(starts),
        improvements=np.array(improvements).reshape(shape),
        favorable=np.array(favorable).reshape(shape),
        groups=codes,
        slices=tuple(slices),
        lower_is_better=frozenset(metric.key for metric in tested if metric.sign < 0),
        ratios=frozenset(metric.key for metric in tested if metric.is_ratio),
        untested=untested,
    )


def _read_groups(baseline: FinishedRun, matching: Matching) -> Mapping[str, str]:
    """Return the groups of the baseline's rows; empty if they are not grouped, or it lacks the column."""
    try:
        return RunRows.from_run(baseline, replace(matching, slices=())).groups
    except ConfigError:
        return {}


@dataclass(frozen=True, slots=True)
class _Metric:
    """A metric that is tested for alarms.

    Args:
        sign: 1 if a higher value is better, -1 if a lower value is.
        bounds: Bounds per scale; None is the metric's only scale.
    """

    key: str
    sign: int
    bounds: Mapping[str | None, Bounds]

    @property
    def is_ratio(self) -> bool:
        """Whether values have no upper bound, so that a row counts by the ratio of its two values."""
        return any(bounds.is_open for bounds in self.bounds.values())

    @property
    def range(self) -> float:
        """Greatest value minus least; 1 if rows have different scales, or if ratios count: tenfold is all of it."""
        if self.is_ratio:
            return 1.0
        widths = [bounds.high - bounds.low for bounds in self.bounds.values()]
        return widths[0] if len(widths) == 1 else 1.0

    def quality(self, cell: Score | None) -> float | None:
        """Return how good a cell is, from 0 to 1; None without a value. Values beyond the bounds count as the bound.

        If ratios count, differences from -1 to 1 say how many times as good a row is; see `_compare`.
        """
        if cell is None or cell.value is None or (bounds := self.bounds.get(cell.label)) is None:
            return None
        if self.is_ratio:
            return self.sign * log(max(cell.value, _NOTHING), _LARGEST_RATIO)
        place = min(1.0, max(0.0, (cell.value - bounds.low) / (bounds.high - bounds.low)))
        return place if self.sign > 0 else 1.0 - place


def _choose_metrics(
    baseline: FinishedRun, cells: Mapping[str, Mapping[str, Score]]
) -> tuple[list[_Metric], dict[str, str]]:
    tested: list[_Metric] = []
    untested: dict[str, str] = {}
    for recorded in baseline.record.metrics:
        metric = _read_metric(recorded, cells.get(recorded.key, {}))
        if isinstance(metric, str):
            untested[recorded.key] = metric
        else:
            tested.append(metric)
    return tested, untested


def _read_metric(metric: MetricRecord, cells: Mapping[str, Score]) -> _Metric | str:
    """Return a metric, or the reason why it is not tested."""
    direction = metric.direction
    if direction is Direction.NEITHER:
        return _NO_DIRECTION
    scales = {cell.label for cell in cells.values() if cell.value is not None}
    if not scales:
        return _NO_VALUES
    bounds = {scale: Bounds.of_metric(metric.bounds, scale) for scale in sorted(scales, key=str)}
    known = {scale: found for scale, found in bounds.items() if found is not None}
    if not known:
        return _NO_BOUNDS
    return _Metric(metric.key, -1 if direction is Direction.LOWER else 1, known)


def _match_rows(run: FinishedRun, names: Matching, before: RunRows) -> RunRows | None:
    """Return the rows of an earlier run; None if they cannot be matched with those of the baseline."""
    try:
        rows = RunRows.from_run(run, names)
    except ConfigError:
        return None
    return None if set(before.keys.values()).isdisjoint(rows.keys.values()) else rows


def _compare(
    metric: _Metric,
    before: Mapping[str, Score],
    after: Mapping[str, Score],
    rows: Sequence[str],
    groups: Codes | None,
) -> tuple[Floats, Floats]:
    """Return the improvements of a metric's rows, and the greatest possible ones where a score is missing."""
    in_both = np.array([row in before and row in after for row in rows])
    old, new = (
        np.where(in_both, np.array([metric.quality(cells.get(row)) for row in rows], dtype=np.float64), np.nan)
        for cells in (before, after)
    )
    same_scale = [in_both[place] and before[row].label == after[row].label for place, row in enumerate(rows)]
    improvements = np.where(same_scale, np.clip(new - old, -1.0, 1.0), np.nan)
    favorable = np.full(len(rows), np.nan)
    if are_selective(old, new, groups) and metric.is_ratio:
        favorable = np.where(np.isnan(new) ^ np.isnan(old), 1.0, np.nan)
    elif are_selective(old, new, groups):
        favorable = np.where(np.isnan(new), 1.0 - old, np.where(np.isnan(old), new, np.nan))
    return improvements, favorable
