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

_LEAST_GROUPS = 10
"""Least effective number of groups for which a design effect is given."""

TOO_NARROW = (
    "the interval may be too narrow. If the file is sorted by topic or document, are these all there are? Then it "
    "holds; if there are more, --by COLUMN allows for them"
)
"""Meaning of a serial order. Sorting alone makes no interval too narrow: of files with the rows of six topics in turn,
a third to all are called serial, 98 to 99 % of the intervals hold, and those by topic are up to five times as wide."""
SERIAL = f"rows that follow each other score alike: {TOO_NARROW}"
"""Sentence about rows in serial order."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Distribution of the values of scored cells.

    Args:
        interval: 95 % interval of the mean; None for fewer than five rows, or effective groups of rows.
        deviation: Sample standard deviation; None for fewer than two values.
        groups: Number of groups of rows; None if rows are not grouped.
        effective_groups: Number of equal groups that would say as much, see `Units.effective`; None if rows are not
            grouped.
        design_effect: Variance of the mean divided by that of as many independent rows; None if rows are not grouped,
            for few groups, or if all values are the same.
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
    effective_groups: float | None = None
    design_effect: float | None = None
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

    def add(self, score: Score, group: str = "") -> None:
        """Count a cell.

        Args:
            group: Group of its row, if rows belong to groups.
        """
        self._status[score.status] += 1
        if score.value is not None:
            self._values[score.label].append(score.value)
            if self._is_grouped:
                self._members[score.label].append(group)
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

    def add_values(self, values: Floats, scale: str | None = None, groups: Iterable[str] = ()) -> None:
        """Add the values of many cells of one scale.

        Args:
            scale: Label of the scale; None if all rows have the same.
            groups: Group of each value, if rows belong to groups.
        """
        self._values[scale].frombytes(np.ascontiguousarray(values, dtype=np.float64).tobytes())
        if self._is_grouped:
            self._members[scale].extend(groups)

    def values(self) -> tuple[Floats, list[str] | None] | None:
        """Return the values of all rows and their groups; None without any, or if rows have different scales."""
        if set(self._values) != {None}:
            return None
        return np.asarray(self._values[None]), self._members[None] if self._is_grouped else None

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
        names = self._members[scale] if self._is_grouped else None
        return summarize_distribution(self._values[scale], Bounds.of_metric(self._bounds, scale), names)


def summarize_distribution(
    values: Sequence[float], bounds: Bounds | None = None, groups: Sequence[str] | None = None
) -> Distribution:
    """Return the distribution of at least one value.

    Args:
        bounds: Bounds of the values; None if there are none.
        groups: Group of each row; None if rows are independent.

    >>> distribution = summarize_distribution([1.0] * 30, Bounds(0.0, 1.0))
    >>> distribution.mean, distribution.note
    (1.0, '30 of 30 rows at 1; true mean at least 0.90')
    """
    numbers = np.sort(np.asarray(values, dtype=np.float64)) if groups is None else np.asarray(values, dtype=np.float64)
    units = Units.from_values(numbers, groups)
    interval = estimate_interval(units, bounds, SEED)
    note = _note(numbers, interval, bounds)
    if groups is None and is_serial(np.asarray(values, dtype=np.float64)):
        note = SERIAL
    return Distribution(
        count=len(numbers),
        mean=float(numbers.mean()),
        interval=interval,
        median=float(np.median(numbers)),
        deviation=float(numbers.std(ddof=1)) if len(numbers) > 1 else None,
        least=float(numbers.min()),
        greatest=float(numbers.max()),
        groups=None if groups is None else len(units),
        effective_groups=None if groups is None else units.effective,
        design_effect=None if groups is None else design_effect(numbers, units),
        note=note,
    )


def design_effect(values: Floats, units: Units) -> float | None:
    """Return the variance of a mean of grouped rows divided by that of as many independent rows.

    The rows say as much as `rows / design_effect` independent rows would. None for fewer than ten effective groups,
    which are too few to estimate it, or if all values are the same.

    Source: Kish, "Survey Sampling" (1965), section 5.4.

    Args:
        values: Values of the rows.
        units: Groups of these rows.

    >>> values = np.repeat([1.0, 0.0], 10)
    >>> round(design_effect(values, Units.from_values(values, list("aabbccddeeffgghhiijj"))), 2)
    2.11
    """
    rows, groups = len(values), len(units)
    spread = float(values.var(ddof=1)) if rows > 1 else 0.0
    if units.effective < _LEAST_GROUPS or not spread:
        return None
    variance = float((units.influence**2).sum()) / rows**2 * groups / (groups - 1)
    return variance / (spread / rows)


def describe_groups(groups: int, effective: float | None) -> str:
    """Return a number of groups in words, with the effective number if it is lower.

    Args:
        effective: Effective number of groups; None if it is not known.

    >>> describe_groups(1, 1.0), describe_groups(41, 3.81)
    ('1 group', '41 groups (effectively 3.8)')
    """
    words = f"{groups:,} group{'s' * (groups != 1)}"
    lower = effective is not None and round(effective, 1) < groups
    return f"{words} (effectively {effective:,.1f})" if lower else words


def _note(values: Floats, interval: Interval | None, bounds: Bounds | None) -> str | None:
    """Return what is known of the true mean if all values are the same; the limit is rounded away from the mean."""
    if len(values) < 2 or np.ptp(values) > 0:
        return None
    alike = f"{len(values)} of {len(values)} rows at {values[0]:g}"
    if interval is None or bounds is None:
        return f"{alike}; too few to say more" if interval is None else alike
    if interval.high == values[0]:
        return f"{alike}; true mean at least {math.floor(interval.low * 100) / 100:.2f}"
    if interval.low == values[0]:
        return f"{alike}; true mean at most {math.ceil(interval.high * 100) / 100:.2f}"
    return f"{alike}; true mean {interval.low:.2f} to {interval.high:.2f}"
