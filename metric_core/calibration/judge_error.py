"""Correct mean scores for the errors of a judge, by the mean scores of rows from elsewhere that people labelled.

The mean score of a run lies between those that the judge gives to bad and to good rows, and its place between them is
the share of good rows (Rogan and Gladen, 1978). It holds for any share of good rows, as long as the judge errs on good
rows, and on bad ones, as on the labelled rows.

The interval comes from the distributions of the three means, each a `BetaMean`: a judge that was right on all labelled
rows of a class may still be wrong on others. It is unbounded if the judge can hardly distinguish good from bad.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from metric_core.calibration.beta_means import BetaMean
from metric_core.calibration.estimates import DIFFERENCE, SHARE, DrawnEstimate, Estimate
from metric_core.statistics.bounded_means import are_enough
from metric_core.statistics.resampling import Floats, Interval, Units

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


@dataclass(frozen=True, slots=True)
class JudgeErrorFit:
    """The mean scores that a judge gives to bad and to good rows.

    Args:
        bad: Mean score of the rows with label 0.
        good: Mean score of the rows with label 1.
        of_bad: Distribution of the mean score of all such rows.
        of_good: The same for rows with label 1.
        correlation: Correlation of the two, which groups with rows of both labels cause.
    """

    bad: float
    good: float
    of_bad: BetaMean
    of_good: BetaMean
    correlation: float = 0.0

    @property
    def gain(self) -> float:
        """Difference of the two means."""
        return self.good - self.bad

    @property
    def gain_error(self) -> float:
        """Standard error of the difference of the two means."""
        bad, good = self.of_bad.variance, self.of_good.variance
        return float(np.sqrt(max(bad + good - 2 * self.correlation * np.sqrt(bad * good), 0.0)))


def estimate_judge_error(
    labels: Floats,
    scores: Floats,
    bounds: tuple[float, float],
    groups: Sequence[str] | None = None,
    weights: Floats | None = None,
) -> JudgeErrorFit | None:
    """Return the mean scores of bad and of good rows; None for one label, or too few rows or groups, see `are_enough`.

    Args:
        labels: 0 or 1 for each row.
        bounds: Least and greatest score.
        groups: Group of each row; None if rows are independent.
        weights: Number of rows that each row represents, if rows were drawn with different probabilities; None if all
            are equal.

    >>> labels, scores = np.array([0, 0, 0, 1, 1, 1.0]), np.array([0.1, 0.2, 0.3, 0.6, 0.8, 1.0])
    >>> error = estimate_judge_error(labels, scores, (0.0, 1.0))
    >>> round(error.bad, 6), round(error.good, 6)
    (0.2, 0.8)
    """
    if len(np.unique(labels)) < 2 or not are_enough(Units.from_values(scores, groups, weights)):
        return None
    means, beliefs, influences = [], [], []
    ends = (min(bounds[0], float(scores.min())), max(bounds[1], float(scores.max())))
    for rows in (1.0 - labels, labels):
        sums, counts = (Units.from_values(each, groups, weights).sums for each in (rows * scores, rows))
        part = Units(sums[counts > 0], counts[counts > 0])
        means.append(part.mean)
        beliefs.append(BetaMean.from_units(part, ends))
        influences.append((sums - part.mean * counts) / float(counts.sum()))
    scale = float(np.sqrt(beliefs[0].variance * beliefs[1].variance))
    correlation = float(np.clip(influences[0] @ influences[1] / scale, -0.99, 0.99)) if scale > 0 else 0.0
    return JudgeErrorFit(means[0], means[1], beliefs[0], beliefs[1], round(correlation, 9))


def correct_mean(error: JudgeErrorFit, scores: Units) -> Estimate:
    """Return the bias-corrected mean of scores, assuming that the judge errs as on the labelled rows.

    Args:
        scores: Scores of at least two rows or groups.

    >>> error = JudgeErrorFit(0.2, 0.8, BetaMean(20, 80), BetaMean(80, 20))
    >>> round(correct_mean(error, Units.from_values(np.array([0.4, 0.5, 0.6] * 100))).value, 6)
    0.5
    >>> error = JudgeErrorFit(0.5, 0.51, BetaMean(50, 50), BetaMean(51, 49))
    >>> estimate = correct_mean(error, Units.from_values(np.array([0.4, 0.6])))
    >>> estimate.value, estimate.interval()
    (None, Interval(low=0.0, high=1.0))
    """
    mean = BetaMean.from_units(scores, (error.of_good.low, error.of_good.high))
    return _drawn(error, mean, scores.mean - error.bad, SHARE)


def correct_difference(error: JudgeErrorFit, differences: Units) -> Estimate:
    """Return the bias-corrected difference of two runs, assuming that the judge errs alike on both.

    Args:
        differences: Differences of scores of at least two pairs of rows or groups.

    >>> error = JudgeErrorFit(0.2, 0.7, BetaMean(20, 80), BetaMean(70, 30))
    >>> round(correct_difference(error, Units.from_values(np.array([0.0, 0.1, 0.2] * 100))).value, 6)
    0.2
    """
    width = error.of_good.high - error.of_good.low
    return _drawn(error, BetaMean.from_units(differences, (-width, width)), differences.mean, DIFFERENCE)


def describe_outside(error: JudgeErrorFit, scores: Units) -> str:
    """Return why a mean score contradicts the labelled rows: no mean label gives it; an empty text if one does.

    The mean must be more than one standard error beyond the mean score of good rows, or of bad ones. So a mean that is
    not refused has an interval with a width.

    Args:
        scores: Scores of at least two rows or groups.

    >>> error = JudgeErrorFit(0.2, 0.9, BetaMean(80, 320), BetaMean(360, 40))
    >>> describe_outside(error, Units.from_values(np.array([1.0, 0.96, 0.98] * 100)))
    'the mean score 0.980 is above 0.900, that of good labelled rows: the judge scores otherwise than on these rows'
    >>> describe_outside(error, Units.from_values(np.array([0.9, 0.91, 0.92] * 100)))
    ''
    """
    variance = float((scores.influence**2).sum()) / float(scores.counts.sum()) ** 2 * len(scores) / (len(scores) - 1)
    for end, kind, beyond, of_end in (
        (error.good, "good", scores.mean - error.good, error.of_good),
        (error.bad, "bad", error.bad - scores.mean, error.of_bad),
    ):
        if error.gain > 0 and beyond > _OUTSIDE_ERRORS * np.sqrt(variance + of_end.variance):
            return (
                f"the mean score {scores.mean:.3f} is {'above' if kind == 'good' else 'below'} {end:.3f}, that of "
                f"{kind} labelled rows: the judge scores otherwise than on these rows"
            )
    return ""


def describe_weakness(error: JudgeErrorFit) -> str:
    """Return why labelled rows do not determine a corrected mean: a poor judge, or few labels."""
    if error.gain + 2 * error.gain_error < _LITTLE_GAIN * (error.of_good.high - error.of_good.low):
        return "the scores hardly separate rows with good labels from rows with bad ones"
    return "too few labelled rows, of one class at least, to say how the judge scores good and bad rows"


def _drawn(error: JudgeErrorFit, mean: BetaMean, rise: float, within: Interval) -> Estimate:
    """Return the distribution of (mean - bad) / (good - bad); of mean / (good - bad) for a difference.

    Limits for decisions move the pseudo-rows to the bounds that are unfavorable: the lower limit is least for a low
    mean and high scores of good and bad rows.
    """
    draws, undetermined = _divide(error, 0.0, mean, within)
    strict_low = _divide(error, 0.5, mean.shift(-0.5), within)[0]
    strict_high = _divide(error, -0.5, mean.shift(0.5), within)[0]
    is_determined = error.gain > 0 and undetermined <= _MOST_UNDETERMINED
    value = float(np.clip(rise / error.gain, within.low, within.high)) if is_determined else None
    return DrawnEstimate(value, draws[0], draws[1], strict_low[0], strict_high[1])


def _divide(
    error: JudgeErrorFit, shift: float, mean: BetaMean, within: Interval
) -> tuple[tuple[Floats, Floats], float]:
    """Return draws in ascending order, with undetermined ones at either end of the range, and their share.

    Args:
        shift: Number of pseudo-rows to move from the lower to the upper bound of good and bad rows.
    """
    first, second, third = _normal_numbers()
    together = error.correlation * first + np.sqrt(1 - error.correlation**2) * second
    bad, good = error.of_bad.shift(shift).draws(first), error.of_good.shift(shift).draws(together)
    means, gains = mean.draws(third), good - bad
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
