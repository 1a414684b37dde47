"""What people would say on average, where a judge that errs was asked: a mean score, corrected by labelled rows.

Labelled rows tell what score a judge gives on average to rows that people call good, and to rows that they call bad:
a straight line from label to score. Read backwards, the line turns a mean score into the mean label that would give it
(for yes and no Rogan and Gladen's estimator, 1978, of a share behind a test that errs). It is read from label to score,
not the other way round, because how a judge errs on good and on bad rows stays when there are more good ones, which is
what a run is made to find out. Its interval is Fieller's (1954), which grows without bounds where the judge can hardly
tell good from bad, as it should.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from metric_core.statistics.resampling import LEVEL, Interval, Units

Floats = NDArray[np.float64]

LEAST_UNITS = 4
"""Rows, or groups of rows that belong together, below which nothing is said."""


@dataclass(frozen=True, slots=True)
class JudgeError:
    """The line from the label of a row to its score, and how sure it is.

    Args:
        bad: mean score of rows with the label 0, the lowest.
        gain: by how much rows with the label 1, the highest, score above that.
        variance_bad: of `bad`.
        covariance: of `bad` and `gain`.
        variance_gain: of `gain`.
        units: rows, or groups of rows, that it was found from.
    """

    bad: float
    gain: float
    variance_bad: float
    covariance: float
    variance_gain: float
    units: int


@dataclass(frozen=True, slots=True)
class CorrectedMean:
    """What people would say on average of rows that a judge has scored, or by how much more of one run than of another.

    Args:
        value: the mean label, from 0 to 1, or the difference; None where the judge can not tell good rows from bad.
        interval: of it, as far as labels go.
    """

    value: float | None
    interval: Interval


def estimate_judge_error(labels: Floats, scores: Floats, groups: Sequence[str] | None = None) -> JudgeError | None:
    """Fits the line by least squares; its covariance is the jackknife's, which leaves out one unit at a time.

    Args:
        labels: what people say of each row, from 0 to 1.
        scores: what the metric says of them.
        groups: rows with equal names belong together; None: every row stands alone.

    Returns:
        The line; None where there are too few units, or it hangs on one of them.

    >>> found = estimate_judge_error(np.array([0, 0, 0, 1, 1, 1.0]), np.array([0.1, 0.2, 0.3, 0.6, 0.8, 1.0]))
    >>> round(found.bad, 6), round(found.gain, 6), found.units
    (0.2, 0.6, 6)
    """
    names = np.arange(len(labels)) if groups is None else np.asarray(groups, dtype=object).astype(str)
    of_unit = np.unique(names, return_inverse=True)[1]
    units = int(of_unit.max()) + 1 if len(labels) else 0
    if units < LEAST_UNITS:
        return None
    one = np.ones_like(labels)
    squares = _sums(np.stack([one, labels, labels, labels**2], axis=1), of_unit, units).reshape(units, 2, 2)
    products = _sums(np.stack([scores, labels * scores], axis=1), of_unit, units)
    without = squares.sum(axis=0) - squares
    if np.any(np.linalg.det(without) <= 1e-9 * np.prod(np.diagonal(without, axis1=1, axis2=2), axis=1)):
        return None
    bad, gain = np.linalg.solve(squares.sum(axis=0), products.sum(axis=0))
    left = np.linalg.solve(without, (products.sum(axis=0) - products)[..., None])[..., 0]
    spread = left - left.mean(axis=0)
    covariance = (units - 1) / units * spread.T @ spread
    return JudgeError(
        bad=float(bad),
        gain=float(gain),
        variance_bad=float(covariance[0, 0]),
        covariance=float(covariance[0, 1]),
        variance_gain=float(covariance[1, 1]),
        units=units,
    )


def correct_mean(error: JudgeError, scores: Units) -> CorrectedMean:
    """The mean label of rows with these scores, if the judge errs on them as on the labelled ones.

    Args:
        error: how the judge errs.
        scores: of at least two rows, or groups of them.

    >>> error = JudgeError(bad=0.2, gain=0.6, variance_bad=1e-4, covariance=-1e-4, variance_gain=2e-4, units=200)
    >>> round(correct_mean(error, Units.of(np.array([0.4, 0.5, 0.6] * 100))).value, 6)
    0.5
    >>> correct_mean(JudgeError(0.5, 0.01, 1e-4, 0, 1e-2, 200), Units.of(np.array([0.4, 0.6])))
    CorrectedMean(value=None, interval=Interval(low=0.0, high=1.0))
    """
    mean, variance = _mean_and_variance(scores)
    return _invert_line(error, mean - error.bad, variance + error.variance_bad, error.covariance, Interval(0.0, 1.0))


def correct_difference(error: JudgeError, differences: Units) -> CorrectedMean:
    """By how much the mean label of one run is above that of another, if the judge errs on both alike.

    Args:
        error: how the judge errs.
        differences: of the scores of at least two pairs of rows, or groups of them.

    >>> error = JudgeError(bad=0.2, gain=0.5, variance_bad=1e-4, covariance=-1e-4, variance_gain=2e-4, units=200)
    >>> round(correct_difference(error, Units.of(np.array([0.0, 0.1, 0.2] * 100))).value, 6)
    0.2
    """
    return _invert_line(error, *_mean_and_variance(differences), 0.0, Interval(-1.0, 1.0))


def _mean_and_variance(units: Units) -> tuple[float, float]:
    squares = float((units.influence**2).sum()) / float(units.counts.sum()) ** 2
    return units.mean, squares * len(units) / (len(units) - 1)


def _invert_line(error: JudgeError, rise: float, variance: float, covariance: float, within: Interval) -> CorrectedMean:
    """The label behind a rise of the score above that of bad rows.

    The labels y for which (rise - gain * y)² is at most t² times its variance lie between the roots of a parabola.

    Args:
        error: how the judge errs.
        rise: the rise.
        variance: of the rise.
        covariance: minus that of the rise and the gain.
        within: the least and the greatest that can be said.
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


def _sums(values: Floats, of_unit: NDArray[np.intp], units: int) -> Floats:
    found = np.zeros((units, values.shape[1]))
    np.add.at(found, of_unit, values)
    return found
