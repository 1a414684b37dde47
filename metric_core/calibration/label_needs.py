"""Compute how many more labels of each kind would halve the interval of a corrected mean.

More labels are assumed to look like those that are there: the same mean score of good and of bad rows, known from so
many more rows. What the scores of the run leave open stays: no number of labels makes up for a small run.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from metric_core.calibration.estimates import Estimate, ExactEstimate, RectifiedEstimate
from metric_core.calibration.judge_error import JudgeErrorFit, correct_mean
from metric_core.calibration.looks import LookedAt
from metric_core.statistics.resampling import LEVEL, Units

MOST_TIMES = 256
"""Multiple of the labels above which no number is given."""

_MIXES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of bad rows among more labels."""
_CLOSE = 0.1
_CHEAPER = 0.8
_STEPS = 8


@dataclass(frozen=True, slots=True)
class LabelsNeeded:
    """More labels that would halve an interval.

    Args:
        more: Number of labels with the present shares of good and bad rows; None if not even `MOST_TIMES` times the
            present number would do.
        good: Number of labels of good rows in a mix of good and bad rows that needs fewer labels; None without one.
        bad: Number of labels of bad rows in that mix.
    """

    more: int | None
    good: int | None = None
    bad: int | None = None


def labels_to_halve(error: JudgeErrorFit, scores: Units, good: int, bad: int) -> LabelsNeeded:
    """Return how many more labels from elsewhere would halve the interval of a corrected mean.

    Args:
        error: Error of the judge on the labels so far.
        good: Number of labelled rows that are good; for grades, of all labelled rows.
        bad: Number of labelled rows that are bad; 0 for grades.

    >>> import numpy as np
    >>> from metric_core.calibration.judge_error import estimate_judge_error
    >>> labels = np.array([1.0] * 90 + [0.0] * 10)
    >>> judged = np.array([1.0] * 86 + [0.0] * 4 + [1.0] * 2 + [0.0] * 8)
    >>> error = estimate_judge_error(labels, judged, None, (0.0, 1.0))
    >>> found = labels_to_halve(error, Units.from_values(np.array([1.0] * 2400 + [0.0] * 600)), 90, 10)
    >>> 200 < found.more < 300, found.good + found.bad < 200, found.bad > found.good / 2
    (True, True, True)
    """
    wanted = _width(correct_mean(error, scores)) / 2

    def narrows(more_good: float, more_bad: float) -> bool:
        times = 1 + more_good / good, 1 + more_bad / max(1, bad)
        return _width(correct_mean(_with_more_labels(error, *times), scores)) <= wanted

    labels = good + bad
    share = bad / labels
    more = _least_times(lambda times: narrows((times - 1) * good, (times - 1) * bad))
    found = None if more is None else math.ceil((more - 1) * labels)
    if error.classes is None:
        return LabelsNeeded(found)

    def times_with(mix: float) -> float:
        times = _least_times(lambda times: narrows((times - 1) * labels * (1 - mix), (times - 1) * labels * mix))
        return math.inf if times is None else times

    times, mix = min((times_with(mix), mix) for mix in _MIXES)
    is_cheaper = math.isfinite(times) and (more is None or times - 1 <= _CHEAPER * (more - 1))
    if not is_cheaper or abs(mix - share) < _CLOSE:
        return LabelsNeeded(found)
    total = math.ceil((times - 1) * labels)
    of_bad = round(total * mix)
    return LabelsNeeded(found, total - of_bad, of_bad)


def own_labels_to_halve(estimate: Estimate, labelled: int) -> LabelsNeeded:
    """Return how many more labels of a run's own rows would halve the interval of its mean label.

    Args:
        estimate: Estimate from the labels so far.

    >>> from metric_core.calibration.beta_means import BetaMean
    >>> estimate = ExactEstimate(0.8, BetaMean(80.5, 20.5))
    >>> 270 <= own_labels_to_halve(estimate, 100).more <= 300
    True
    """
    times = _least_times(lambda times: _width(_more_own_labels(estimate, times)) <= _width(estimate) / 2)
    return LabelsNeeded(None if times is None else math.ceil((times - 1) * labelled))


def own_labels_to_decide(estimate: Estimate, labelled: int, threshold: float, level: float) -> int | None:
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
        limits = _more_own_labels(estimate, times).strict_limits(1 - level)
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


def _with_more_labels(error: JudgeErrorFit, times_good: float, times_bad: float) -> JudgeErrorFit:
    if error.classes is not None:
        bad, good = error.classes.bad.strengthen(times_bad), error.classes.good.strengthen(times_good)
        return replace(error, classes=replace(error.classes, bad=bad, good=good))
    return replace(
        error,
        variance_bad=error.variance_bad / times_good,
        covariance=error.covariance / times_good,
        variance_gain=error.variance_gain / times_good,
        units=max(error.units, int(error.units * times_good)),
    )


def _more_own_labels(estimate: Estimate, times: float) -> Estimate:
    if isinstance(estimate, LookedAt):
        return replace(estimate, once=_more_own_labels(estimate.once, times))
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
