"""Bias-corrected means: mean scores of an imperfect judge, corrected by means of labelled rows.

Labelled rows show the average score that a judge gives to rows that people call good, and to rows that they call bad: a
straight line from label to score. Inverting the line turns a mean score into a mean label (for binary labels, this is
the estimator of a prevalence by Rogan and Gladen, 1978). The regression is of score on label, not the reverse, because
the errors of a judge on good and on bad rows do not depend on the share of good rows, which a run is meant to estimate.
The interval is Fieller's (1954), which becomes unbounded if the judge can hardly tell good from bad.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from metric_core.statistics.resampling import LEVEL, Floats, Interval, Units

LEAST_UNITS = 4
"""Minimum number of rows, or of groups of rows, for an estimate."""


@dataclass(frozen=True, slots=True)
class JudgeError:
    """The line from the label of a row to its score, with its covariance.

    Args:
        bad: Mean score of rows with label 0, the lowest.
        gain: Mean score of rows with label 1, the highest, minus `bad`.
        variance_bad: Variance of `bad`.
        covariance: Covariance of `bad` and `gain`.
        variance_gain: Variance of `gain`.
        units: Number of rows, or of groups of rows, that the line was fitted to.
    """

    bad: float
    gain: float
    variance_bad: float
    covariance: float
    variance_gain: float
    units: int


@dataclass(frozen=True, slots=True)
class CorrectedMean:
    """Bias-corrected mean of rows that a judge has scored, or difference of such means of two runs.

    Args:
        value: Mean label, from 0 to 1, or the difference; None if the judge cannot tell good rows from bad.
        interval: Interval of the value, clipped to the range of labels.
    """

    value: float | None
    interval: Interval


def estimate_judge_error(labels: Floats, scores: Floats, groups: Sequence[str] | None = None) -> JudgeError | None:
    """Fit the line from label to score by least squares, and estimate its covariance by a jackknife over units.

    Args:
        labels: Label of each row, from 0 to 1.
        scores: Score of each row.
        groups: Group of each row; None if rows are independent.

    Returns:
        The line; None with fewer than `LEAST_UNITS` units, or if leaving out one of them leaves it undetermined.

    >>> error = estimate_judge_error(np.array([0, 0, 0, 1, 1, 1.0]), np.array([0.1, 0.2, 0.3, 0.6, 0.8, 1.0]))
    >>> round(error.bad, 6), round(error.gain, 6), error.units
    (0.2, 0.6, 6)
    """
    names = np.arange(len(labels)) if groups is None else np.asarray(groups, dtype=object).astype(str)
    unit_of_row = np.unique(names, return_inverse=True)[1]
    units = int(unit_of_row.max()) + 1 if len(labels) else 0
    if units < LEAST_UNITS:
        return None
    one = np.ones_like(labels)
    squares = _sums(np.stack([one, labels, labels, labels**2], axis=1), unit_of_row, units).reshape(units, 2, 2)
    products = _sums(np.stack([scores, labels * scores], axis=1), unit_of_row, units)
    without = squares.sum(axis=0) - squares
    if np.any(np.linalg.det(without) <= 1e-9 * np.prod(np.diagonal(without, axis1=1, axis2=2), axis=1)):
        return None
    bad, gain = np.linalg.solve(squares.sum(axis=0), products.sum(axis=0))
    estimates = np.linalg.solve(without, (products.sum(axis=0) - products)[..., None])[..., 0]
    deviations = estimates - estimates.mean(axis=0)
    covariance = (units - 1) / units * deviations.T @ deviations
    return JudgeError(
        bad=float(bad),
        gain=float(gain),
        variance_bad=float(covariance[0, 0]),
        covariance=float(covariance[0, 1]),
        variance_gain=float(covariance[1, 1]),
        units=units,
    )


def correct_mean(error: JudgeError, scores: Units) -> CorrectedMean:
    """Return the bias-corrected mean of scores, assuming that the judge errs as on the labelled rows.

    Args:
        error: Error of the judge.
        scores: Scores of at least two rows or groups.

    >>> error = JudgeError(bad=0.2, gain=0.6, variance_bad=1e-4, covariance=-1e-4, variance_gain=2e-4, units=200)
    >>> round(correct_mean(error, Units.from_values(np.array([0.4, 0.5, 0.6] * 100))).value, 6)
    0.5
    >>> correct_mean(JudgeError(0.5, 0.01, 1e-4, 0, 1e-2, 200), Units.from_values(np.array([0.4, 0.6])))
    CorrectedMean(value=None, interval=Interval(low=0.0, high=1.0))
    """
    mean, variance = _mean_and_variance(scores)
    return _invert_line(error, mean - error.bad, variance + error.variance_bad, error.covariance, Interval(0.0, 1.0))


def correct_difference(error: JudgeError, differences: Units) -> CorrectedMean:
    """Return the bias-corrected difference of two runs, assuming that the judge errs alike on both.

    Args:
        error: Error of the judge.
        differences: Differences of scores of at least two pairs of rows or groups.

    >>> error = JudgeError(bad=0.2, gain=0.5, variance_bad=1e-4, covariance=-1e-4, variance_gain=2e-4, units=200)
    >>> round(correct_difference(error, Units.from_values(np.array([0.0, 0.1, 0.2] * 100))).value, 6)
    0.2
    """
    return _invert_line(error, *_mean_and_variance(differences), 0.0, Interval(-1.0, 1.0))


def _mean_and_variance(units: Units) -> tuple[float, float]:
    squares = float((units.influence**2).sum()) / float(units.counts.sum()) ** 2
    return units.mean, squares * len(units) / (len(units) - 1)


def _invert_line(error: JudgeError, rise: float, variance: float, covariance: float, within: Interval) -> CorrectedMean:
    """Return the mean label that corresponds to a rise of the score above that of bad rows.

    The interval is the set of labels y for which (rise - gain * y)² is at most t² times its variance; its ends are the
    roots of a parabola.

    Args:
        error: Error of the judge.
        rise: Rise of the score.
        variance: Variance of the rise.
        covariance: Covariance of the rise and the gain, negated.
        within: Least and greatest possible label.
    """
    from scipy.special import stdtrit  # noqa: PLC0415 scipy loads slowly

    t2 = float(stdtrit(error.units - 2, (1 + LEVEL) / 2)) ** 2
    square = error.gain**2 - t2 * error.variance_gain
    if error.gain <= 0 or square <= 0:
        return CorrectedMean(None, within)
    half = rise * error.gain + t2 * covariance
    root = float(np.sqrt(max(0.0, half**2 - square * (rise**2 - t2 * variance))))
    value, low, high = np.clip([rise / error.gain, (half - root) / square, (half + root) / square], *astuple(within))
    return CorrectedMean(float(value), Interval(float(low), float(high)))


def _sums(values: Floats, unit_of_row: NDArray[np.intp], units: int) -> Floats:
    sums = np.zeros((units, values.shape[1]))
    np.add.at(sums, unit_of_row, values)
    return sums
