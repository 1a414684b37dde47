"""Compute how many more labels of a run would halve the interval of its mean label, or decide a rule about it.

More labels are assumed to look like those that are there. What the scores of the run leave open stays: no number of
labels makes up for a small run.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from metric_core.calibration.estimates import Estimate, ExactEstimate, RectifiedEstimate
from metric_core.calibration.looks import LookedAt
from metric_core.statistics.resampling import LEVEL

MOST_TIMES = 256
"""Multiple of the labels above which no number is given."""

_STEPS = 8


def labels_to_halve(estimate: Estimate, labelled: int) -> int | None:
    """Return how many more labels of a run's own rows would halve the interval of its mean label; None if none would.

    Args:
        estimate: Estimate from the labels so far.

    >>> from metric_core.calibration.beta_means import BetaMean
    >>> estimate = ExactEstimate(0.8, BetaMean(80.5, 20.5))
    >>> 270 <= labels_to_halve(estimate, 100) <= 300
    True
    """
    wanted = _width(estimate) / 2
    times = _least_times(lambda times: _width(_more_labels(estimate, times)) <= wanted)
    return None if times is None else math.ceil((times - 1) * labelled)


def labels_to_decide(estimate: Estimate, labelled: int, threshold: float, level: float) -> int | None:
    """Return about how many more labels of a run's own rows would show on which side of a threshold the mean is.

    Args:
        estimate: Estimate from the labels so far; its value is assumed to be true.
        threshold: Threshold for the mean label, from 0 to 1.
        level: Confidence level of the limit, in (0.5, 1).

    Returns:
        The number; None if it is above `MOST_TIMES` times the labels.
    """
    if estimate.value is None or estimate.value == threshold:
        return None

    def decides(times: float) -> bool:
        limits = _more_labels(estimate, times).strict_limits(1 - level)
        return not limits.low <= threshold <= limits.high

    times = _least_times(decides)
    return None if times is None else math.ceil((times - 1) * labelled)


def rows_to_reach(value: float, low: float, threshold: float, rows: int) -> int | None:
    """Return about how many labelled rows it takes until the lower end of a figure's interval reaches a threshold.

    The distance from value to end shrinks with the square root of the number of rows.

    Args:
        value: Value of the figure, assumed to be true.
        low: Lower end of its interval.
        threshold: Threshold for the lower end.
        rows: Number of labelled rows so far.

    >>> rows_to_reach(0.7, 0.5, 0.6, 100), rows_to_reach(0.7, 0.5, 0.7, 100), rows_to_reach(0.7, 0.65, 0.6, 100)
    (400, None, 100)
    """
    if low >= threshold:
        return rows
    times = ((value - low) / (value - threshold)) ** 2 if value > threshold else math.inf
    return math.ceil(round(rows * times, 6)) if times <= MOST_TIMES else None


def _more_labels(estimate: Estimate, times: float) -> Estimate:
    if isinstance(estimate, LookedAt):
        return replace(estimate, once=_more_labels(estimate.once, times))
    if isinstance(estimate, ExactEstimate) and estimate.belief is not None:
        return replace(estimate, belief=estimate.belief.strengthen(times))
    if isinstance(estimate, RectifiedEstimate):
        return replace(estimate, labels=times * estimate.labels)
    return estimate


def _width(estimate: Estimate) -> float:
    interval = estimate.interval(LEVEL)
    return interval.high - interval.low


def _least_times(is_enough: Callable[[float], bool]) -> float | None:
    """Return the least multiple of the labels that is enough, to within a few percent; None if there is none."""
    high = 1.0
    while not is_enough(high):
        if high >= MOST_TIMES:
            return None
        high *= 2
    low = high / 2
    for _ in range(_STEPS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return max(1.0, high)
