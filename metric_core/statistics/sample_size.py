"""Compute how many rows decide a question, and how small a difference a number of rows can show.

The distribution of a mean of N rows is approximated by a shifted gamma distribution (Pearson's type III) with the mean,
variance and skewness that the values seen so far predict. With one pseudo-row at a bound, it is close to the limits of
`BoundedMean`: for values that are all alike, it is exponential, as it must be.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from metric_core.statistics.bounded_means import Bounds
from metric_core.statistics.resampling import Floats, Units

POWER = 0.8
"""Probability of finding a difference that a number of rows is called enough for."""
MOST_ROWS = 10_000_000
"""Number of rows above which no number is given."""

_BISECTIONS = 20
_NORMAL_POWER = 0.8416212335729143


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean, variance and third central moment of the values of rows or groups.

    Args:
        third: Third central moment of the values.
        size: Rows per unit: 1, or the average number of rows of a group.
        step: For differences of two runs, the size of the changes by which a further difference comes about: rows that
            change by so much. 0 if all rows change by as much as the mean.
    """

    mean: float
    variance: float
    third: float
    size: float = 1.0
    step: float = 0.0

    @classmethod
    def from_units(cls, units: Units) -> "Moments":
        """Return the moments of rows or groups.

        >>> import numpy as np
        >>> Moments.from_units(Units.from_values(np.array([0.0, 1.0]))).variance
        0.25
        """
        size = float(units.counts.mean())
        deviations = units.influence / size
        return cls(units.mean, float((deviations**2).mean()), float((deviations**3).mean()), size)

    @classmethod
    def of_differences(cls, units: Units, differences: Floats, bounds: Bounds | None) -> "Moments":
        """Return the moments of the differences of two runs; a further difference comes as those that were seen.

        Args:
            units: Rows or groups with these differences.
            differences: Difference of each row.
            bounds: Bounds of the differences: the step if no row changed.

        >>> rows = np.array([1.0, -1.0] + [0.0] * 18)
        >>> moments = Moments.of_differences(Units.from_values(rows), rows, Bounds(-1.0, 1.0))
        >>> moments.variance, moments.step
        (0.1, 1.0)
        """
        moments = cls.from_units(units)
        changed = float(np.abs(differences).mean())
        if not changed:
            return replace(moments, step=0.0 if bounds is None else bounds.high)
        return replace(moments, step=(moments.variance + moments.mean**2) / changed)

    def shift(self, change: float) -> "Moments":
        """Return the moments of values that are all higher by `change`."""
        return replace(self, mean=self.mean + change)

    def with_difference(self, difference: float) -> "Moments":
        """Return the moments of differences of two runs whose true difference is this one, instead of the mean."""
        more = abs(difference) * self.step
        third = self.third + difference * self.step**2
        return replace(self, mean=difference, variance=self.variance + more, third=third)


def _quantile_of_mean(moments: Moments, units: float, ends: Sequence[tuple[float, float]], share: float) -> float:
    """Return a quantile of the mean of rows and pseudo-rows, given as pairs of a value and a number."""
    total = units + sum(number for _, number in ends)
    center = (units * moments.mean + sum(number * value for value, number in ends)) / total
    off = moments.mean - center
    second = units * (moments.variance + off**2)
    third = units * (moments.third + 3 * moments.variance * off + off**3)
    for value, number in ends:
        second += number * (value - center) ** 2
        third += number * (value - center) ** 3
    variance = second / (total * (total + 1))
    skewness = 2 * third / (total * (total + 1) * (total + 2)) / variance**1.5 if variance else 0.0
    return center + math.sqrt(variance) * _gamma_quantile(skewness, share)


def rows_to_decide(moments: Moments, threshold: float, bounds: Bounds, level: float) -> int | None:
    """Return the number of rows that would show, with a power of 80 %, on which side of a threshold the mean lies.

    Args:
        moments: Moments of the values seen so far; the mean is assumed to be true.
        level: Confidence level of the limit, in (0.5, 1).

    Returns:
        The number of rows; None if it is above `MOST_ROWS`, or if the mean equals the threshold.

    >>> rows_to_decide(Moments(1.0, 0.0, 0.0), 0.98, Bounds(0.0, 1.0), 0.95)
    148
    """
    if moments.mean == threshold:
        return None
    end = bounds.low if moments.mean > threshold else bounds.high
    return _find_rows(moments, threshold, [(end, 1.0)], level)


def _find_rows(moments: Moments, threshold: float, ends: Sequence[tuple[float, float]], level: float) -> int | None:
    """Return the number of rows whose limit at a level is beyond a threshold, with a power of 80 %."""

    def decides(units: int) -> bool:
        return _is_decided(moments, units, threshold, ends, level)

    most = max(2, int(MOST_ROWS / moments.size))
    high = 2
    while not decides(high):
        if high >= most:
            return None
        high = min(2 * high, most)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decides(middle) else (middle, high)
    return math.ceil(high * moments.size)


def _is_decided(
    moments: Moments, units: float, threshold: float, ends: Sequence[tuple[float, float]], level: float
) -> bool:
    """Return whether the limit of so many rows or groups is beyond a threshold, with a power of 80 %."""
    sign = 1 if moments.mean > threshold else -1
    unlucky = moments.shift(-sign * _NORMAL_POWER * math.sqrt(moments.variance / units))
    return sign * (_quantile_of_mean(unlucky, units, ends, 1 - level if sign > 0 else level) - threshold) > 0


def _gamma_quantile(skewness: float, share: float) -> float:
    """Return a quantile of the gamma distribution with mean 0, variance 1 and this skewness."""
    from scipy.special import gammaincinv, ndtri  # noqa: PLC0415 scipy loads slowly

    if abs(skewness) < 1e-4:
        return float(ndtri(share))
    shape = 4 / skewness**2
    quantile = (float(gammaincinv(shape, share if skewness > 0 else 1 - share)) - shape) / math.sqrt(shape)
    return quantile if skewness > 0 else -quantile


@dataclass(frozen=True, slots=True)
class RowsNeeded:
    """Numbers of rows for a comparison with a baseline.

    Args:
        to_see: Rows with which 80 of 100 comparisons find a true difference; None if above `MOST_ROWS`.
        to_pass: Rows with which 80 of 100 gates pass if there is no true difference, with the difference as the
            largest allowed change for the worse; None if above `MOST_ROWS`.
    """

    to_see: int | None
    to_pass: int | None


def detectable_difference(
    differences: Moments, units: float, bounds: Bounds | None, tests: int = 1, level: float = 0.95
) -> float | None:
    """Return the true difference of two runs that 80 of 100 comparisons of as many rows would find.

    Args:
        differences: Moments of the differences of paired rows; their mean does not matter.
        units: Number of rows or groups.
        tests: Number of metrics that are compared, for which p is corrected.
        level: Confidence level of the interval, and 1 less the level of the tests.

    Returns:
        The difference; None if it is above the greatest that there can be.

    >>> rows = np.array([1.0, -1.0] + [0.0] * 18)
    >>> moments = Moments.of_differences(Units.from_values(rows), rows, Bounds(-1.0, 1.0))
    >>> [round(detectable_difference(moments, 200, Bounds(-1.0, 1.0), tests), 3) for tests in (1, 11)]
    [0.083, 0.116]
    """
    ends, share = _both_ends(bounds), 1 - (1 - level) / 2 / tests

    def is_found(difference: float) -> bool:
        return _is_decided(differences.with_difference(difference), units, 0.0, ends, share)

    low, high = 0.0, 1.0 + 10 * math.sqrt(differences.variance) if bounds is None else bounds.high
    if not is_found(high):
        return None
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_found(middle) else (middle, high)
    return high


def _both_ends(bounds: Bounds | None) -> Sequence[tuple[float, float]]:
    return () if bounds is None else [(bounds.low, 0.5), (bounds.high, 0.5)]


def rows_for_difference(
    differences: Moments, difference: float, bounds: Bounds, level: float = 0.95, tests: int = 1
) -> RowsNeeded:
    """Return how many rows it takes to see a difference of two runs, and to pass a gate with it as its margin.

    Args:
        differences: Moments of the differences of paired rows; their mean does not matter.
        difference: Difference to see, above 0.
        level: Confidence level of the interval and of the gate's limits.
        tests: Number of metrics that are compared, for which p is corrected.

    >>> rows_for_difference(Moments(0.0, 0.04, 0.0), 0.02, Bounds(-1.0, 1.0))
    RowsNeeded(to_see=802, to_pass=728)
    """
    share = 1 - (1 - level) / 2 / tests
    return RowsNeeded(
        to_see=_find_rows(differences.with_difference(difference), 0.0, _both_ends(bounds), share),
        to_pass=rows_to_decide(differences.with_difference(0.0), difference, bounds, level),
    )
