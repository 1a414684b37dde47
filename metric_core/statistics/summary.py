"""Summaries of score columns: the mean with its interval, and counts of cells."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metric_core.records import Direction, Score, Status
from metric_core.statistics.resampling import SEED, Interval, Units, bootstrap_mean


@dataclass(frozen=True, slots=True)
class Distribution:
    """Distribution of the values of scored cells.

    Args:
        count: Number of values.
        mean: Mean of the values.
        interval: Interval of the mean; None for fewer than two values.
        median: Median of the values.
        deviation: Sample standard deviation; None for fewer than two values.
        least: Smallest value.
        greatest: Greatest value.
    """

    count: int
    mean: float
    interval: Interval | None
    median: float
    deviation: float | None
    least: float
    greatest: float


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """Summary of a metric over all rows.

    Args:
        metric: Key of the metric.
        direction: Direction of improvement.
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
    reasons: dict[str, int]


def summarize(metric: str, direction: Direction, scores: Iterable[Score]) -> MetricSummary:
    """Summarize the cells of one metric in one pass, storing only their values.

    Args:
        metric: Key of the metric.
        direction: Direction of improvement.
        scores: Cells, one per row.

    >>> cells = [Score.scored(1), Score.scored(0), Score.undefined("empty")]
    >>> summary = summarize("faithfulness", Direction.HIGHER, cells)
    >>> summary.distribution.mean, summary.scored, summary.undefined, summary.failed, summary.reasons
    (0.5, 2, 1, 0, {'empty': 1})
    """
    status: Counter[Status] = Counter()
    categories: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    values: dict[str | None, array[float]] = defaultdict(lambda: array("d"))
    for score in scores:
        status[score.status] += 1
        if score.value is not None:
            values[score.label].append(score.value)
        elif score.label is not None:
            categories[score.label] += 1
        if score.reason is not None:
            reasons[score.reason] += 1
    scales = sorted(scale for scale in values if scale is not None)
    return MetricSummary(
        metric=metric,
        direction=direction,
        scored=status[Status.SCORED],
        undefined=status[Status.UNDEFINED],
        failed=status[Status.FAILED],
        distribution=describe(values[None]) if values and not scales else None,
        scales={scale: describe(values[scale]) for scale in scales},
        categories=dict(categories.most_common()),
        reasons=dict(reasons.most_common()),
    )


def describe(values: Sequence[float]) -> Distribution:
    """Return the distribution of at least one value.

    >>> describe([0.25, 0.75]).mean
    0.5
    """
    numbers = np.asarray(values, dtype=np.float64)
    return Distribution(
        count=len(numbers),
        mean=float(numbers.mean()),
        interval=mean_interval(numbers),
        median=float(np.median(numbers)),
        deviation=float(numbers.std(ddof=1)) if len(numbers) > 1 else None,
        least=float(numbers.min()),
        greatest=float(numbers.max()),
    )


def mean_interval(values: NDArray[np.float64]) -> Interval | None:
    """Return the bootstrap interval of the mean, which is deterministic; None for fewer than two values.

    >>> mean_interval(np.array([0.5, 0.5, 0.5]))
    Interval(low=0.5, high=0.5)
    """
    return bootstrap_mean(Units.from_values(np.sort(values)), SEED).interval() if len(values) > 1 else None
