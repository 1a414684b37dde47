"""Find how many rows a comparison needs, from the scores of earlier runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metric_core.errors import ConfigError
from metric_core.records import Direction, Score
from metric_core.statistics.bounded_means import Bounds
from metric_core.statistics.pairs import ScoreColumns, pair_scores
from metric_core.statistics.resampling import Units
from metric_core.statistics.sample_size import Moments, RowsNeeded, rows_for_difference
from tasks.comparison.run_pair import Matching, RunPair
from tasks.runs.finished_run import FinishedRun

LEAST_OBSERVED = 20
"""Fewest rows, or effective groups of rows, that show how much rows vary.

One row has no variance, and few rows may be alike by chance. From 20 normal values, the standard error of the variance,
and so of the number of rows, is 32 %.
"""


@dataclass(frozen=True, slots=True)
class MetricRows:
    """Number of rows that a comparison of a metric needs.

    Args:
        metric: Key of the metric, with the scale if rows have different scales.
        rows: Number of scored rows that the numbers come from.
        needed: Numbers of rows; None if there are too few rows or groups to learn from.
        groups: Number of groups of these rows; None if they are not grouped.
    """

    metric: str
    rows: int
    needed: RowsNeeded | None
    groups: int | None = None


def find_rows_needed(runs: Sequence[FinishedRun], difference: float, by: str | None = None) -> list[MetricRows]:
    """Return how many rows it takes to see a difference of each metric, and to pass a gate with it as margin.

    The differences of two runs are those of their rows. From one run alone, two runs are taken to vary independently,
    which needs more rows than runs of similar systems.

    Args:
        runs: One run, or two runs of the same rows.
        difference: Difference of the means, above 0.
        by: Column by which rows are grouped; by default that of the last run's configuration.

    Raises:
        ConfigError: There are not one or two runs, no metric has bounds and values, or all have too few rows.
    """
    if len(runs) not in {1, 2}:
        raise ConfigError(f"numbers of rows come from one run or from two, got {len(runs)}")
    *earlier, last = runs
    config = last.config
    matching = Matching(by=by or config.get("by"), weights=config.get("weights"), traffic=config.get("traffic") or {})
    pair = RunPair.from_runs(earlier[0] if earlier else None, last, matching)
    columns = pair.columns()
    tests = sum(any(cell.value is not None for cell in column.b.values()) for column in columns)
    found_in = _of_two if earlier else _of_one
    found = [rows for column in columns for rows in found_in(column, difference, tests)]
    if not found:
        raise ConfigError(f"{last.folder} has no metric whose values have bounds, so no numbers of rows can be found")
    if all(each.needed is None for each in found):
        most = max(found, key=lambda each: each.rows if each.groups is None else each.groups)
        got = f"{most.rows} scored row{'s' * (most.rows != 1)}"
        got = got if most.groups is None else f"{got} of {most.groups} groups"
        wanted = f"at least {LEAST_OBSERVED} {'rows' if most.groups is None else 'groups'}"
        raise ConfigError(
            f"{last.folder} has {got}, wanted {wanted} to see how much rows vary: evaluate more rows, then plan again"
        )
    return found


def _of_two(column: ScoreColumns, difference: float, tests: int) -> list[MetricRows]:
    found = []
    for pairs in pair_scores(column).pairs:
        if pairs.difference_bounds is None or pairs.is_open:  # a difference that is worth finding depends on the unit
            continue
        units = pairs.units(pairs.differences)
        needed = None
        if units.effective >= LEAST_OBSERVED:
            moments = Moments.of_differences(units, pairs.differences, pairs.difference_bounds)
            needed = rows_for_difference(moments, difference, pairs.difference_bounds, tests=tests)
        groups = None if pairs.groups is None else len(units)
        found.append(MetricRows(_label(column, pairs.scale), len(pairs.rows), needed, groups))
    return found


def _of_one(column: ScoreColumns, difference: float, tests: int) -> list[MetricRows]:
    found = []
    scales = sorted({cell.label for cell in column.b.values() if cell.value is not None}, key=str)
    for scale in scales:
        bounds = Bounds.of_metric(column.bounds, scale)
        if bounds is None or bounds.is_open:
            continue
        cells: dict[str, Score] = {row: cell for row, cell in sorted(column.b.items()) if cell.label == scale}
        values = {row: cell.value for row, cell in cells.items() if cell.value is not None}
        names = column.groups_of(list(values))
        units = Units.from_values(np.array(list(values.values())), names, column.weights_of(values))
        needed = None
        if units.effective >= LEAST_OBSERVED:
            one = Moments.from_units(units)
            both = Moments(0.0, 2 * one.variance, 0.0, one.size)  # the third moments of two equal systems cancel out
            needed = rows_for_difference(both, difference, bounds.of_differences, tests=tests)
        groups = None if names is None else len(units)
        found.append(MetricRows(_label(column, scale), len(values), needed, groups))
    return found


def _label(column: ScoreColumns, scale: str | None) -> str:
    name = column.metric if scale is None else f"{column.metric} on {scale}"
    return name if column.direction is not Direction.LOWER else f"{name} ↓"
