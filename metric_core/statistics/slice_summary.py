"""Summarize slices: the metrics of each, and whether they are worse than those of the other rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from metric_core.records import Direction, Score
from metric_core.statistics.bounded_means import BoundedMean, Bounds, are_enough, p_not_below
from metric_core.statistics.paired_tests import holm
from metric_core.statistics.resampling import LEVEL, SEED, Units
from metric_core.statistics.slices import SMALL_SLICE, RowSlices, groups_within
from metric_core.statistics.summary import CellCounts, MetricSummary


@dataclass(frozen=True, slots=True)
class Rest:
    """The other rows of a run, compared with those of a slice.

    Args:
        p: P-value of "the slice is not worse than the other rows", after Holm's correction over all slices and metrics.
        is_worse: True if the slice is worse by more than chance.
    """

    mean: float
    p: float
    is_worse: bool


@dataclass(frozen=True, slots=True)
class SlicedMetric(MetricSummary):
    """Summary of a metric over the rows of a slice, without reasons.

    Args:
        rest: The other rows; None for a metric without a direction, bounds or one scale, and for too few rows or groups
            on either side.
    """

    rest: Rest | None = None

    @classmethod
    def from_summary(cls, summary: MetricSummary, rest: Rest | None) -> "SlicedMetric":
        """Return the summary with the other rows in place of its reasons."""
        values = {each.name: getattr(summary, each.name) for each in fields(MetricSummary)}
        return cls(**values | {"reasons": {}, "rest": rest})


@dataclass(frozen=True, slots=True)
class SliceSummary:
    """Summary of a slice.

    Args:
        value: Value of its rows.
        is_small: True if there are so few rows that the means can be far from the truth.
        metrics: Metrics over these rows, in the order of the run.
    """

    value: str
    rows: int
    is_small: bool
    metrics: tuple[SlicedMetric, ...]


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """Summaries of the slices of a column.

    Args:
        values: Number of different values, without those that are missing.
        merged: Number of these values whose rows are one slice together.
        slices: Summaries of the slices, the largest first.
    """

    column: str
    values: int
    merged: int
    slices: tuple[SliceSummary, ...]


@dataclass(slots=True)
class SlicedCells:
    """The cells of one metric, counted by slice.

    Args:
        metric: Key of the metric.
        bounds: Least and greatest value of the metric; None if it has none, or if each scale has its own.
        is_grouped: True if rows belong to groups.
        counts: Column -> value -> cells.
    """

    metric: str
    direction: Direction
    bounds: tuple[float, float] | None
    is_grouped: bool = False
    counts: dict[str, dict[str, CellCounts]] = field(default_factory=dict)

    def add_all(
        self,
        cells: Iterable[tuple[str, Score, str]],
        slices: Sequence[RowSlices],
        weights: Mapping[str, float] | None = None,
    ) -> None:
        """Count cells.

        Args:
            cells: Row, score and group of each cell.
            slices: Slices of all rows, by column.
            weights: Weight of each row; None if each counts once.
        """
        for row, score, group in cells:
            for sliced in slices:
                by_value = self.counts.setdefault(sliced.column, {})
                value = sliced.values[row]
                if value not in by_value:
                    by_value[value] = self._count()
                by_value[value].add(score, group, None if weights is None else weights[row])

    def summarize(self, sliced: RowSlices) -> dict[str, SlicedMetric]:
        """Return the metric by value of a column; the p-values are not corrected for their number."""
        found = self.counts.get(sliced.column, {})
        rests = dict(self._compare_with_rest(sliced.column, found))
        return {
            value: SlicedMetric.from_summary(found.get(value, self._count()).summarize_slice(), rests.get(value))
            for value in sliced.sizes
        }

    def _count(self) -> CellCounts:
        return CellCounts(self.metric, self.direction, self.bounds, is_grouped=self.is_grouped)

    def _compare_with_rest(self, column: str, found: Mapping[str, CellCounts]) -> Iterator[tuple[str, Rest]]:
        bounds = Bounds.of_metric(self.bounds)
        values = {value: cells for value, counts in found.items() if (cells := counts.values()) is not None}
        if self.direction is Direction.NEITHER or bounds is None or len(values) < 2:
            return
        bounds = bounds.around(np.concatenate([cells.values for cells in values.values()]))
        for value, cells in values.items():
            others = [each for other, each in values.items() if other != value]
            rest = np.concatenate([each.values for each in others])
            names = None if cells.groups is None else [name for each in others for name in each.groups or ()]
            known = [each.weights for each in others if each.weights is not None]
            here = Units.from_values(cells.values, groups_within(cells.groups), cells.weights)
            there = Units.from_values(rest, names, np.concatenate(known) if known else None)
            if are_enough(here) and are_enough(there):
                p = self._p(here, there, bounds, f"{self.metric} {column} {value}")
                yield value, Rest(mean=there.mean, p=p, is_worse=False)

    def _p(self, here: Units, there: Units, bounds: Bounds, label: str) -> float:
        """Return the p-value of "these rows are not worse than the others"."""
        inside, outside = BoundedMean(here, bounds, SEED, label), BoundedMean(there, bounds, SEED, f"not {label}")
        if self.direction is Direction.LOWER:
            return p_not_below(outside, inside)
        return p_not_below(inside, outside)


def summarize_slices(metrics: Sequence[SlicedCells], slices: Sequence[RowSlices]) -> list[ColumnSummary]:
    """Return the summaries of all slices; which are worse is decided together, over all slices and metrics.

    Args:
        slices: Slices of all rows, by column.

    >>> from metric_core.statistics.slices import divide_rows
    >>> rows = {f"row {i}": ("travel" if i % 2 else "vacation") for i in range(80)}
    >>> cells = SlicedCells("faithfulness", Direction.HIGHER, (0.0, 1.0))
    >>> slices = [divide_rows("topic", rows)]
    >>> cells.add_all(((row, Score.scored(float(i % 2)), "") for i, row in enumerate(rows)), slices)
    >>> [column] = summarize_slices([cells], slices)
    >>> [(one.value, one.metrics[0].distribution.mean, one.metrics[0].rest.is_worse) for one in column.slices]
    [('travel', 1.0, False), ('vacation', 0.0, True)]
    """
    found = [[cells.summarize(sliced) for cells in metrics] for sliced in slices]
    tested = [metric.rest.p for column in found for by_value in column for metric in by_value.values() if metric.rest]
    adjusted = iter(holm(tested))
    decided = [[_decide(by_value, adjusted) for by_value in column] for column in found]
    return [
        ColumnSummary(
            column=sliced.column,
            values=sliced.distinct,
            merged=sliced.merged,
            slices=tuple(
                SliceSummary(value, rows, rows < SMALL_SLICE, tuple(by_value[value] for by_value in column))
                for value, rows in sliced.sizes.items()
            ),
        )
        for sliced, column in zip(slices, decided, strict=True)
    ]


def _decide(by_value: Mapping[str, SlicedMetric], adjusted: Iterator[float]) -> dict[str, SlicedMetric]:
    decided = {}
    for value, metric in by_value.items():
        rest = metric.rest
        if rest is not None:
            p = next(adjusted)
            rest = replace(rest, p=p, is_worse=p <= 1 - LEVEL)
        decided[value] = replace(metric, rest=rest)
    return decided
