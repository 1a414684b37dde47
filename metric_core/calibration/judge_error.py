"""Correct mean scores for the errors of a judge, by the mean scores of labelled rows.

Labelled rows show the average score that a judge gives to rows that people call good, and to rows that they call bad: a
straight line from label to score. Inverting the line turns a mean score into a mean label (for binary labels, this is
the estimator of a prevalence by Rogan and Gladen, 1978). The regression is of score on label, not the reverse, because
the errors of a judge on good and on bad rows do not depend on the share of good rows, which a run is meant to estimate.

For binary labels and scores with bounds, the interval comes from the distributions of the two averages and of the
mean score, each a `BetaMean`. A judge that was right on all labelled rows of a class may still be wrong on others. For
grades, it is Fieller's (1954). Both become unbounded if the judge can hardly distinguish good from bad.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from metric_core.calibration.beta_means import BetaMean
from metric_core.calibration.estimates import DIFFERENCE, SHARE, DrawnEstimate, Estimate
from metric_core.statistics.bounded_means import LEAST_UNITS
from metric_core.statistics.resampling import LEVEL, Floats, Interval, Units, effective_number

_OUTSIDE_ERRORS = 1.0
"""Standard errors beyond the scores of labelled rows from which a mean score contradicts them.

At the limit of the judge, no score can show that it has become more lenient. With three standard errors, a judge that
calls 97 instead of 90 % of good rows good passed gates wrongly in 43 to 86 % of runs, and left intervals without width;
with one in 3 to 9 %. Of runs with 97 % good rows and an unchanged judge, 3 to 6 % are refused.
"""

DRAWS = 4096
_MOST_UNDETERMINED = 0.025
"""Probability that a judge does not distinguish good from bad, above which nothing is estimated."""
_LITTLE_GAIN = 0.3
"""Difference of the mean scores of good and bad rows, as a share of their range, below which a judge is poor."""
_FIT_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class LabelClasses:
    """Distributions of the mean score of good and of bad rows.

    Args:
        bad: Mean score of rows with label 0.
        good: Mean score of rows with label 1.
        correlation: Correlation of the two, which groups with rows of both labels cause.
    """

    bad: BetaMean
    good: BetaMean
    correlation: float = 0.0


@dataclass(frozen=True, slots=True)
class JudgeErrorFit:
    """The line from the label of a row to its score, with its covariance.

    Args:
        bad: Mean score of rows with label 0, the lowest.
        gain: Mean score of rows with label 1, the highest, minus `bad`.
        units: Number of rows that the line was fitted to, or effective number of groups of rows, rounded down.
        classes: Distributions of the mean scores by label; None for grades, and for scores without bounds.
    """

    bad: float
    gain: float
    variance_bad: float
    covariance: float
    variance_gain: float
    units: int
    classes: LabelClasses | None = None


def estimate_judge_error(
    labels: Floats,
    scores: Floats,
    groups: Sequence[str] | None = None,
    bounds: tuple[float, float] | None = None,
    weights: Floats | None = None,
) -> JudgeErrorFit | None:
    """Fit the line from label to score by least squares, and estimate its uncertainty.

    The covariance comes from a jackknife over units; for labels of 0 and 1 and scores with bounds, from `LabelClasses`.

    Args:
        labels: Label of each row, from 0 to 1.
        groups: Group of each row; None if rows are independent.
        bounds: Least and greatest score; None if the metric has no bounds.
        weights: Number of rows that each row represents, if rows were drawn with different probabilities; None if all
            are equal.

    Returns:
        The line; None with fewer than `LEAST_UNITS` units, with a single label, or if leaving out a unit leaves a line
        through grades undetermined.

    >>> error = estimate_judge_error(np.array([0, 0, 0, 1, 1, 1.0]), np.array([0.1, 0.2, 0.3, 0.6, 0.8, 1.0]))
    >>> round(error.bad, 6), round(error.gain, 6), error.units
    (0.2, 0.6, 6)
    """
    units = _Units.from_groups(len(labels), groups, weights)
    if units.effective < LEAST_UNITS:
        return None
    if bounds is not None and bool(np.isin(labels, (0.0, 1.0)).all()):
        return _classes_error(labels > 0.5, scores, units, bounds) if len(np.unique(labels)) == 2 else None
    fit = _fit_polynomial(labels, scores, units, 1)
    if fit is None:
        return None
    (bad, gain), covariance = fit
    return JudgeErrorFit(
        bad=float(bad),
        gain=float(gain),
        variance_bad=float(covariance[0, 0]),
        covariance=float(covariance[0, 1]),
        variance_gain=float(covariance[1, 1]),
        units=int(units.effective),
    )


def lack_of_fit(
    labels: Floats, scores: Floats, groups: Sequence[str] | None = None, weights: Floats | None = None
) -> float | None:
    """Return the p-value of "scores depend on grades along a straight line", against a curve.

    The test is of the square term of a parabola, with a jackknife over units.

    Args:
        labels: Grade of each row, from 0 to 1.
        groups: Group of each row; None if rows are independent.
        weights: Number of rows that each row represents; None if all are equal.

    Returns:
        The p-value; None with fewer than three grades, or too few rows for a parabola.

    >>> grades = np.linspace(0, 1, 40)
    >>> noise = np.tile([-0.05, 0.05, 0.05, -0.05], 10)
    >>> lack_of_fit(grades, grades**2 + noise) < 0.001 < 0.2 < lack_of_fit(grades, grades + noise)
    True
    """
    units = _Units.from_groups(len(labels), groups, weights)
    if units.effective < LEAST_UNITS or len(np.unique(labels)) < 3:
        return None
    fit = _fit_polynomial(labels - labels.mean(), scores, units, 2)
    if fit is None or fit[1][2, 2] <= 1e-24:
        return None
    from scipy.special import stdtr  # noqa: PLC0415 scipy loads slowly

    return float(2 * stdtr(units.effective - 3, -abs(fit[0][2]) / np.sqrt(fit[1][2, 2])))


def is_crooked(p: float | None) -> bool:
    """Return whether the p-value of `lack_of_fit` refuses a straight line: wrongly in 5 % of cases."""
    return p is not None and p <= _FIT_LEVEL


def correct_mean(error: JudgeErrorFit, scores: Units) -> Estimate:
    """Return the bias-corrected mean of scores, assuming that the judge errs as on the labelled rows.

    Args:
        scores: Scores of at least two rows or groups.

    >>> error = JudgeErrorFit(bad=0.2, gain=0.6, variance_bad=1e-4, covariance=-1e-4, variance_gain=2e-4, units=200)
    >>> round(correct_mean(error, Units.from_values(np.array([0.4, 0.5, 0.6] * 100))).value, 6)
    0.5
    >>> estimate = correct_mean(JudgeErrorFit(0.5, 0.01, 1e-4, 0, 1e-2, 200), Units.from_values(np.array([0.4, 0.6])))
    >>> estimate.value, estimate.interval()
    (None, Interval(low=0.0, high=1.0))
    """
    if error.classes is not None:
        mean = BetaMean.from_units(scores, (error.classes.good.low, error.classes.good.high))
        return _drawn(error.classes, mean, scores.mean - error.bad, error.gain, SHARE)
    mean_score, variance = _mean_and_variance(scores)
    return _fieller(error, mean_score - error.bad, variance + error.variance_bad, error.covariance, SHARE)


def correct_difference(error: JudgeErrorFit, differences: Units) -> Estimate:
    """Return the bias-corrected difference of two runs, assuming that the judge errs alike on both.

    Args:
        differences: Differences of scores of at least two pairs of rows or groups.

    >>> error = JudgeErrorFit(bad=0.2, gain=0.5, variance_bad=1e-4, covariance=-1e-4, variance_gain=2e-4, units=200)
    >>> round(correct_difference(error, Units.from_values(np.array([0.0, 0.1, 0.2] * 100))).value, 6)
    0.2
    """
    if error.classes is not None:
        width = error.classes.good.high - error.classes.good.low
        mean = BetaMean.from_units(differences, (-width, width))
        return _drawn(error.classes, mean, differences.mean, error.gain, DIFFERENCE)
    return _fieller(error, *_mean_and_variance(differences), 0.0, DIFFERENCE)


def describe_outside(error: JudgeErrorFit, scores: Units) -> str:
    """Return why a mean score contradicts the labelled rows: no mean label gives it; an empty text if one does.

    The mean must be more than one standard error beyond the mean score of good rows, or of bad ones. So a mean that is
    not refused has an interval with a width.

    Args:
        scores: Scores of at least two rows or groups.

    >>> error = JudgeErrorFit(bad=0.2, gain=0.7, variance_bad=4e-4, covariance=-4e-4, variance_gain=8e-4, units=200)
    >>> describe_outside(error, Units.from_values(np.array([1.0, 0.96, 0.98] * 100)))
    'the mean score 0.980 is above 0.900, that of good labelled rows: the judge scores otherwise than on these rows'
    >>> describe_outside(error, Units.from_values(np.array([0.9, 0.91, 0.92] * 100)))
    ''
    """
    mean, variance = _mean_and_variance(scores)
    of_good = error.variance_bad + 2 * error.covariance + error.variance_gain
    for end, kind, beyond, of_end in (
        (error.bad + error.gain, "good", mean - error.bad - error.gain, of_good),
        (error.bad, "bad", error.bad - mean, error.variance_bad),
    ):
        if error.gain > 0 and beyond > _OUTSIDE_ERRORS * np.sqrt(variance + max(of_end, 0.0)):
            return (
                f"the mean score {mean:.3f} is {'above' if kind == 'good' else 'below'} {end:.3f}, that of {kind} "
                "labelled rows: the judge scores otherwise than on these rows"
            )
    return ""


def describe_weakness(error: JudgeErrorFit) -> str:
    """Return why labelled rows do not determine a corrected mean: a poor judge, or few labels."""
    best = error.gain + 2 * float(np.sqrt(max(error.variance_gain, 0.0)))
    width = 1.0 if error.classes is None else error.classes.good.high - error.classes.bad.low
    if best < _LITTLE_GAIN * width:
        return "the scores hardly separate rows with good labels from rows with bad ones"
    return "too few labelled rows, of one class at least, to say how the judge scores good and bad rows"


def _classes_error(
    good: NDArray[np.bool_], scores: Floats, units: "_Units", bounds: tuple[float, float]
) -> JudgeErrorFit:
    means, beliefs, influences = [], [], []
    ends = (min(bounds[0], float(scores.min())), max(bounds[1], float(scores.max())))
    for rows in (~good, good):
        counts = units.sums(rows.astype(np.float64))
        part = Units(units.sums(rows * scores)[counts > 0], counts[counts > 0])
        means.append(part.mean)
        beliefs.append(BetaMean.from_units(part, ends))
        influences.append(units.sums(rows * (scores - part.mean)) / float(counts.sum()))
    variances = [belief.variance for belief in beliefs]
    shared = float(influences[0] @ influences[1])
    scale = float(np.sqrt(variances[0] * variances[1]))
    correlation = float(np.clip(shared / scale, -0.99, 0.99)) if scale > 0 else 0.0
    return JudgeErrorFit(
        bad=means[0],
        gain=means[1] - means[0],
        variance_bad=variances[0],
        covariance=shared - variances[0],
        variance_gain=variances[0] + variances[1] - 2 * shared,
        units=int(units.effective),
        classes=LabelClasses(beliefs[0], beliefs[1], round(correlation, 9)),
    )


def _drawn(classes: LabelClasses, mean: BetaMean, rise: float, gain: float, within: Interval) -> Estimate:
    """Return the distribution of (mean - bad) / (good - bad); of mean / (good - bad) for a difference.

    Limits for decisions move the pseudo-rows to the bounds that are unfavorable: the lower limit is least for a low
    mean and high scores of good and bad rows.
    """
    draws, undetermined = _divide(classes, mean, within)
    strict_low = _divide(_shift(classes, 0.5), mean.shift(-0.5), within)[0]
    strict_high = _divide(_shift(classes, -0.5), mean.shift(0.5), within)[0]
    is_determined = gain > 0 and undetermined <= _MOST_UNDETERMINED
    value = float(np.clip(rise / gain, within.low, within.high)) if is_determined else None
    return DrawnEstimate(value, draws[0], draws[1], strict_low[0], strict_high[1])


def _shift(classes: LabelClasses, rows: float) -> LabelClasses:
    return LabelClasses(classes.bad.shift(rows), classes.good.shift(rows), classes.correlation)


def _divide(classes: LabelClasses, mean: BetaMean, within: Interval) -> tuple[tuple[Floats, Floats], float]:
    """Return draws in ascending order, with undetermined ones at either end of the range, and their share."""
    first, second, third = _normal_numbers()
    together = classes.correlation * first + np.sqrt(1 - classes.correlation**2) * second
    bad, good, means = classes.bad.draws(first), classes.good.draws(together), mean.draws(third)
    gains = good - bad
    is_known = gains > 0
    rises = means if within == DIFFERENCE else means - bad
    values = np.clip(rises / np.where(is_known, gains, 1.0), within.low, within.high)
    ends = (np.sort(np.where(is_known, values, within.low)), np.sort(np.where(is_known, values, within.high)))
    return ends, float(1 - is_known.mean())


@cache
def _normal_numbers() -> tuple[Floats, Floats, Floats]:
    """Return three independent normal numbers per draw, from points that fill the unit cube evenly (Kronecker)."""
    from scipy.special import ndtri  # noqa: PLC0415 scipy loads slowly

    root = 1.2207440846057596  # the real root of x**4 = x + 1
    steps = (np.arange(DRAWS) + 1)[None, :] * root ** -np.arange(1.0, 4.0)[:, None]
    first, second, third = ndtri(np.clip((steps + 0.5) % 1.0, 1e-9, 1 - 1e-9))
    return first, second, third


@dataclass(frozen=True, slots=True)
class _Fieller(Estimate):
    """The mean label that corresponds to a rise of the score above that of bad rows.

    Limits enclose the labels y for which (rise - gain * y)² is at most t² times its variance; they are the roots of a
    parabola.

    Args:
        value: Rise divided by gain; None if limits at the usual level are unbounded.
        variance: Variance of the rise.
        covariance: Covariance of the rise and the gain, negated.
        within: Least and greatest possible label.
    """

    error: JudgeErrorFit
    rise: float
    variance: float
    covariance: float
    within: Interval

    def limits(self, tail: float) -> Interval:
        t2 = _square_quantile(self.error, tail)
        square = self.error.gain**2 - t2 * self.error.variance_gain
        if self.error.gain <= 0 or square <= 0:
            return self.within
        half = self.rise * self.error.gain + t2 * self.covariance
        root = float(np.sqrt(max(0.0, half**2 - square * (self.rise**2 - t2 * self.variance))))
        ends = ((half - root) / square, (half + root) / square)
        low, high = np.clip(ends if tail < 0.5 else ends[::-1], self.within.low, self.within.high)
        return Interval(float(low), float(high))


def _fieller(error: JudgeErrorFit, rise: float, variance: float, covariance: float, within: Interval) -> _Fieller:
    is_bounded = error.gain > 0 and error.gain**2 > _square_quantile(error, (1 - LEVEL) / 2) * error.variance_gain
    value = float(np.clip(rise / error.gain, within.low, within.high)) if is_bounded else None
    return _Fieller(value, error, rise, variance, covariance, within)


def _square_quantile(error: JudgeErrorFit, tail: float) -> float:
    """Return the square of a quantile of Student's distribution."""
    from scipy.special import stdtrit  # noqa: PLC0415 scipy loads slowly

    return float(stdtrit(error.units - 2, 1 - tail)) ** 2


def _mean_and_variance(units: Units) -> tuple[float, float]:
    squares = float((units.influence**2).sum()) / float(units.counts.sum()) ** 2
    return units.mean, squares * len(units) / (len(units) - 1)


@dataclass(frozen=True, slots=True)
class _Units:
    """Units of resampling: the unit and the weight of each row, and the number of units."""

    of_row: NDArray[np.intp]
    weights: Floats
    count: int

    @classmethod
    def from_groups(cls, rows: int, groups: Sequence[str] | None, weights: Floats | None) -> "_Units":
        names = np.arange(rows) if groups is None else np.asarray(groups, dtype=object).astype(str)
        of_row = np.unique(names, return_inverse=True)[1].astype(np.intp)
        weight = np.ones(rows) if weights is None else weights / weights.mean()
        return cls(of_row, weight, int(of_row.max()) + 1 if rows else 0)

    @property
    def effective(self) -> float:
        """Effective number of the units, see `effective_number`."""
        return effective_number(self.sums(np.ones(len(self.of_row))))

    def sums(self, values: Floats) -> Floats:
        """Return the weighted sum of the values of each unit."""
        return np.bincount(self.of_row, weights=self.weights * values, minlength=self.count).astype(np.float64)


def _fit_polynomial(labels: Floats, scores: Floats, units: _Units, degree: int) -> tuple[Floats, Floats] | None:
    """Return coefficients, constant first, and covariance; None if the units without one do not determine them."""
    powers = np.stack([labels**power for power in range(degree + 1)], axis=1)
    size = degree + 1
    squares = np.stack([units.sums(powers[:, i] * powers[:, j]) for i in range(size) for j in range(size)], axis=1)
    squares = squares.reshape(units.count, size, size)
    products = np.stack([units.sums(powers[:, i] * scores) for i in range(size)], axis=1)
    without = squares.sum(axis=0) - squares
    if np.any(np.linalg.det(without) <= 1e-9 * np.prod(np.diagonal(without, axis1=1, axis2=2), axis=1)):
        return None
    fitted = np.linalg.solve(squares.sum(axis=0), products.sum(axis=0))
    estimates = np.linalg.solve(without, (products.sum(axis=0) - products)[..., None])[..., 0]
    deviations = estimates - estimates.mean(axis=0)
    return fitted, (units.count - 1) / units.count * deviations.T @ deviations
