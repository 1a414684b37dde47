"""Summarize score columns: the mean with its interval, and counts of cells."""

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat

import numpy as np

from metric_core.records import Direction, Score, Status
from metric_core.statistics.bounded_means import Bounds, estimate_interval
from metric_core.statistics.resampling import SEED, Floats, Interval, Units
from metric_core.statistics.serial_order import is_serial
from metric_core.statistics.slices import groups_within

TOO_NARROW = (
    "the interval may be too narrow. If the file is sorted by topic or document, are these all there are? Then it "
    "holds; if there are more, --by that column allows for them"
)
"""Meaning of a serial order. Sorting alone makes no interval too narrow: of files with the rows of six topics in turn,
a third to all are called serial, 98 to 99 % of the intervals hold, and those by topic are up to five times as wide."""
UNBOUNDED = "no interval, as the metric declares no bounds: with its least and greatest value, it has one"
"""Sentence about a metric without bounds."""
SERIAL = f"rows that follow each other score alike: {TOO_NARROW}"
"""Sentence about rows in serial order."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Distribution of the values of scored cells.

    Args:
        interval: 95 % interval of the mean; None for too few rows or groups.
        deviation: Sample standard deviation; None for fewer than two values.
        groups: Number of groups of rows; None if rows are not grouped.
        independent_groups: Number of equal groups, or of rows with equal weights, that would say as much; None if rows
            are neither grouped nor weighted.
        mean_of_groups: Mean over the means of groups, in which each counts once; None if rows are not grouped.
        mean_of_rows: Mean in which each row counts once; None if it is the mean.
        note: Sentence about the true mean if all values are the same, which an interval alone would not explain, or
            about rows that follow each other and score alike.
    """

    count: int
    mean: float
    interval: Interval | None
    median: float
    deviation: float | None
    least: float
    greatest: float
    groups: int | None = None
    independent_groups: int | None = None
    mean_of_groups: float | None = None
    mean_of_rows: float | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """Summary of a metric over all rows.

    Args:
        metric: Key of the metric.
        scored: Number of cells with a value or a category.
        undefined: Number of cells with nothing to measure.
        failed: Number of cells without a usable answer.
        distribution: Distribution of the values; None without any, or if rows have different scales (see `scales`).
        scales: Scale -> distribution, for metrics whose rows have different scales, which are never mixed.
        categories: Category -> number of cells, for categorical metrics.
        reasons: Reason -> number of cells without a value.
    """

    metric: str
    direction: Direction
    scored: int
    undefined: int
    failed: int
    distribution: Distribution | None
    scales: dict[str, Distribution]
    categories: dict[str, int]
    reasons: dict[str, int] = field(default_factory=dict)


def summarize(
    metric: str,
    direction: Direction,
    scores: Iterable[Score],
    bounds: tuple[float, float] | None = None,
    groups: Iterable[str] | None = None,
) -> MetricSummary:
    """Summarize the cells of one metric in one pass, storing only their values.

    Args:
        scores: Cells, one per row.
        bounds: Least and greatest value of the metric; None if it has none, or if each scale has its own.
        groups: Group of each row; rows without a group are groups of one. None if rows are independent.

    >>> cells = [Score.scored(1), Score.scored(0), Score.undefined("empty")]
    >>> summary = summarize("faithfulness", Direction.HIGHER, cells)
    >>> summary.distribution.mean, summary.scored, summary.undefined, summary.failed, summary.reasons
    (0.5, 2, 1, 0, {'empty': 1})
    """
    cells = CellCounts(metric, direction, bounds, is_grouped=groups is not None)
    for score, group in zip(scores, repeat("") if groups is None else groups, strict=False):
        cells.add(score, group)
    return cells.summarize()


@dataclass(frozen=True, slots=True)
class RowValues:
    """Values of rows.

    Args:
        groups: Group of each row; None if rows are independent.
        weights: Weight of each row; None if each counts once.
    """

    values: Floats
    groups: Sequence[str] | None
    weights: Floats | None


class CellCounts:
    """The cells of a metric, counted one by one; only their values are stored.

    Args:
        bounds: Least and greatest value of the metric; None if it has none, or if each scale has its own.
        is_grouped: True if rows belong to groups.
    """

    def __init__(
        self,
        metric: str,
        direction: Direction,
        bounds: tuple[float, float] | None = None,
        *,
        is_grouped: bool = False,
    ) -> None:
        self._metric, self._direction, self._bounds, self._is_grouped = metric, direction, bounds, is_grouped
        self._status: Counter[Status] = Counter()
        self._categories: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._values: dict[str | None, array[float]] = defaultdict(lambda: array("d"))
        self._members: dict[str | None, list[str]] = defaultdict(list)
        self._weights: dict[str | None, array[float]] = defaultdict(lambda: array("d"))

    def add(self, score: Score, group: str = "", weight: float | None = None) -> None:
        """Count a cell.

        Args:
            group: Group of its row, if rows belong to groups.
            weight: Weight of its row, if rows have weights.
        """
        self._status[score.status] += 1
        if score.value is not None:
            self._values[score.label].append(score.value)
            if self._is_grouped:
                self._members[score.label].append(group)
            if weight is not None:
                self._weights[score.label].append(weight)
        elif score.label is not None:
            self._categories[score.label] += 1
        if score.reason is not None:
            self._reasons[score.reason] += 1

    def add_counts(self, status: Mapping[str, int], categories: Mapping[str, int], reasons: Mapping[str, int]) -> None:
        """Count many cells by what they are, apart from their values.

        Args:
            status: Status -> number of cells.
            categories: Category -> number of categorical cells.
            reasons: Reason -> number of cells without a value.
        """
        self._status.update({Status(name): count for name, count in status.items()})
        self._categories.update(categories)
        self._reasons.update(reasons)

    def add_values(
        self, values: Floats, scale: str | None = None, groups: Iterable[str] = (), weights: Iterable[float] = ()
    ) -> None:
        """Add the values of many cells of one scale.

        Args:
            scale: Label of the scale; None if all rows have the same.
            groups: Group of each value, if rows belong to groups.
            weights: Weight of each value, if rows have weights.
        """
        self._weights[scale].extend(weights)
        self._values[scale].frombytes(np.ascontiguousarray(values, dtype=np.float64).tobytes())
        if self._is_grouped:
            self._members[scale].extend(groups)

    def values(self) -> "RowValues | None":
        """Return the values of all rows; None without any, or if rows have different scales."""
        return self._of_scale(None) if set(self._values) == {None} else None

    def _of_scale(self, scale: str | None) -> "RowValues":
        names = self._members[scale] if self._is_grouped else None
        weights = np.asarray(self._weights[scale]) if self._weights[scale] else None
        return RowValues(np.asarray(self._values[scale]), names, weights)

    def summarize_slice(self) -> MetricSummary:
        """Return the summary of the cells of a slice, whose rows are the units if they belong to one group."""
        names = [name for each in self._members.values() for name in each]
        self._is_grouped = self._is_grouped and groups_within(names) is not None
        return self.summarize()

    def summarize(self) -> MetricSummary:
        """Return the summary of the cells."""
        scales = sorted(scale for scale in self._values if scale is not None)
        return MetricSummary(
            metric=self._metric,
            direction=self._direction,
            scored=self._status[Status.SCORED],
            undefined=self._status[Status.UNDEFINED],
            failed=self._status[Status.FAILED],
            distribution=self._describe(None) if self._values and not scales else None,
            scales={scale: self._describe(scale) for scale in scales},
            categories=dict(self._categories.most_common()),
            reasons=dict(self._reasons.most_common()),
        )

    def _describe(self, scale: str | None) -> Distribution:
        of = self._of_scale(scale)
        return summarize_distribution(of.values, Bounds.of_metric(self._bounds, scale), of.groups, of.weights)


def summarize_distribution(
    values: Sequence[float] | Floats,
    bounds: Bounds | None = None,
    groups: Sequence[str] | None = None,
    weights: Floats | None = None,
) -> Distribution:
    """Return the distribution of at least one value.

    Args:
        bounds: Bounds of the values; None if there are none.
        groups: Group of each row; None if rows are independent.
        weights: Weight of each row; None if each counts once.

    >>> distribution = summarize_distribution([1.0] * 30, Bounds(0.0, 1.0))
    >>> distribution.mean, distribution.note
    (1.0, '30 of 30 rows at 1; true mean at least 0.90')
    """
    numbers = np.asarray(values, dtype=np.float64)
    if groups is None and weights is None:
        numbers = np.sort(numbers, kind="stable")  # in less memory than by an order
    elif groups is None and weights is not None:
        order = np.argsort(numbers, kind="stable")
        numbers, weights = numbers[order], weights[order]
    units = Units.from_values(numbers, groups, weights)
    interval = estimate_interval(units, bounds, SEED)
    note = _note(numbers, interval, bounds)
    if bounds is None and note is None:
        note = UNBOUNDED
    if groups is None and bounds is not None and is_serial(np.asarray(values, dtype=np.float64)):
        note = SERIAL
    return Distribution(
        count=len(numbers),
        mean=float(numbers.mean()) if weights is None else units.mean,
        interval=interval,
        median=float(np.median(numbers)),
        deviation=float(numbers.std(ddof=1)) if len(numbers) > 1 else None,
        least=float(numbers.min()),
        greatest=float(numbers.max()),
        groups=None if groups is None else len(units),
        independent_groups=None if groups is None and weights is None else units.independent,
        mean_of_groups=None if groups is None else float((units.sums / units.counts).mean()),
        mean_of_rows=None if weights is None else float(numbers.mean()),
        note=note,
    )


def describe_groups(groups: int, independent: int | None) -> str:
    """Return a number of groups in words, with the number of equal groups that would say as much if it is lower.

    Args:
        independent: That number; None if it is not known.

    >>> describe_groups(1, 1), describe_groups(41, 12)
    ('1 group', '41 groups (about 12 independent groups)')
    """
    words = f"{groups:,} group{'s' * (groups != 1)}"
    lower = independent is not None and independent < groups
    return f"{words} (about {independent:,} independent group{'s' * (independent != 1)})" if lower else words


def _note(values: Floats, interval: Interval | None, bounds: Bounds | None) -> str | None:
    """Return what is known of the true mean if all values are the same; the limit is rounded away from the mean."""
    if len(values) < 2 or np.ptp(values) > 0:
        return None
    alike = f"{len(values)} of {len(values)} rows at {values[0]:g}"
    if bounds is None:
        return f"{alike}; {UNBOUNDED}"
    if interval is None:
        return f"{alike}; too few to say more"
    if interval.high == values[0]:
        return f"{alike}; true mean at least {math.floor(interval.low * 100) / 100:.2f}"
    if interval.low == values[0]:
        return f"{alike}; true mean at most {math.ceil(interval.high * 100) / 100:.2f}"
    return f"{alike}; true mean {interval.low:.2f} to {interval.high:.2f}"
