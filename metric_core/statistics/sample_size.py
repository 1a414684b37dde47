"""Numbers of rows: how many decide a question, and how small a difference a number of rows can show.

The distribution of a mean of N rows is approximated by a shifted gamma distribution (Pearson's type III) with the mean,
variance and skewness that the values seen so far predict. With one pseudo-row at a bound, it is close to the limits of
`BoundedMean`: for values that are all alike, it is exponential, as it must be.
"""

import math
from dataclasses import dataclass

from metric_core.statistics.bounded_means import Bounds
from metric_core.statistics.resampling import Units

POWER = 0.8
"""Probability of finding a difference that a number of rows is called enough for."""
MOST_ROWS = 10_000_000
"""Number of rows above which no number is given."""

_NORMAL_POWER = 0.8416212335729143


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean, variance and third central moment of the values of rows or groups.

    Args:
        mean: Mean of the values.
        variance: Variance of the values, at least 0.
        third: Third central moment of the values.
        size: Rows per unit: 1, or the average number of rows of a group.
    """

    mean: float
    variance: float
    third: float
    size: float = 1.0

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

    def shift(self, change: float) -> "Moments":
        """Return the moments of values that are higher by `change`."""
        return Moments(self.mean + change, self.variance, self.third, self.size)


def limit_of_mean(moments: Moments, units: float, end: float, level: float) -> float:
    """Return the limit that a number of rows or groups would give, with one pseudo-row at an end of the range.

    Args:
        moments: Moments of the values.
        units: Number of rows or groups.
        end: Unfavorable end of the range: the limit is a lower one if it is below the mean, else an upper one.
        level: Confidence level of the limit, in (0.5, 1).

    >>> round(limit_of_mean(Moments(1.0, 0.0, 0.0), 30, 0.0, 0.95), 2)
    0.91
    """
    total = units + 1
    center = (units * moments.mean + end) / total
    rows_off, end_off = moments.mean - center, end - center
    variance = (units * (moments.variance + rows_off**2) + end_off**2) / (total * (total + 1))
    rows_third = moments.third + 3 * moments.variance * rows_off + rows_off**3
    third = 2 * (units * rows_third + end_off**3) / (total * (total + 1) * (total + 2))
    share = 1 - level if end <= moments.mean else level
    return center + math.sqrt(variance) * _gamma_quantile(third / variance**1.5 if variance else 0.0, share)


def rows_to_decide(moments: Moments, threshold: float, bounds: Bounds, level: float) -> int | None:
    """Return the number of rows that would show, with a power of 80 %, on which side of a threshold the mean lies.

    Args:
        moments: Moments of the values seen so far; the mean is assumed to be true.
        threshold: Threshold for the true mean.
        bounds: Bounds of the values.
        level: Confidence level of the limit, in (0.5, 1).

    Returns:
        The number of rows; None if it is above `MOST_ROWS`, or if the mean equals the threshold.

    >>> rows_to_decide(Moments(1.0, 0.0, 0.0), 0.98, Bounds(0.0, 1.0), 0.95)
    148
    """
    is_above = moments.mean > threshold
    end = bounds.low if is_above else bounds.high
    sign = 1 if is_above else -1

    def decides(units: int) -> bool:
        unlucky = moments.shift(-sign * _NORMAL_POWER * math.sqrt(moments.variance / units))
        return sign * (limit_of_mean(unlucky, units, end, level) - threshold) > 0

    if moments.mean == threshold:
        return None
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


def _gamma_quantile(skewness: float, share: float) -> float:
    """Return a quantile of the gamma distribution with mean 0, variance 1 and this skewness."""
    from scipy.special import gammaincinv, ndtri  # noqa: PLC0415 scipy loads slowly

    if abs(skewness) < 1e-4:
        return float(ndtri(share))
    shape = 4 / skewness**2
    quantile = (float(gammaincinv(shape, share if skewness > 0 else 1 - share)) - shape) / math.sqrt(shape)
    return quantile if skewness > 0 else -quantile
