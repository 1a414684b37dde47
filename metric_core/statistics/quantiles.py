"""Estimate quantiles of the values of rows, such as the seconds that 95 of 100 answers take at most.

A quantile is tested by the share of the rows on one side of it, so a limit is the value of a row: for independent rows
the order statistic of the binomial distribution, whatever the distribution of the values.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from metric_core.statistics.bounded_means import BoundedMean, Bounds, are_enough
from metric_core.statistics.resampling import SEED, Floats, Units

_SHARES = Bounds(0.0, 1.0)
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile with its limits.

    Args:
        low: Lower limit; None if the rows are too few for one.
        high: Upper limit; None if the rows are too few for one.
    """

    value: float
    low: float | None
    high: float | None


def estimate_quantile(
    values: Floats,
    share: float,
    level: float,
    groups: Sequence[str] | None = None,
    weights: Floats | None = None,
) -> Quantile:
    """Return a quantile of the values of rows, with limits that each hold at a level.

    Args:
        share: Share of the rows that have at most this value, in (0, 1).
        level: Confidence level of each limit.
        groups: Group of each row; None if rows are independent.
        weights: Weight of each row; None if each counts once.

    >>> found = estimate_quantile(np.arange(1.0, 101.0), 0.95, 0.975)
    >>> found.value, found.low, found.high
    (95.0, 90.0, 100.0)
    >>> estimate_quantile(np.arange(1.0, 31.0), 0.95, 0.975).high is None
    True
    """
    marks = np.unique(values)
    counts = np.ones(len(values)) if weights is None else weights
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(counts[order]) >= share * counts.sum() - _ROUNDING
    value = float(values[order][int(np.argmax(reached))])

    def holds(met: Floats, least: float) -> bool:
        units = Units.from_values(met.astype(np.float64), groups, weights)
        return BoundedMean(units, _SHARES, SEED).limit_below(level) >= least

    if not are_enough(Units.from_values(values, groups, weights)):
        return Quantile(value, None, None)
    high = _first(len(marks), lambda place: holds(values <= marks[place], share))
    low = _first(len(marks), lambda place: holds(values >= marks[len(marks) - 1 - place], 1 - share))
    return Quantile(
        value,
        None if low is None else float(marks[len(marks) - 1 - low]),
        None if high is None else float(marks[high]),
    )


def _first(count: int, is_true: Callable[[int], bool]) -> int | None:
    """Return the first place at which a condition holds that holds at all later ones; None if it never does."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_true(middle) else (middle + 1, high)
    return low if low < count else None
