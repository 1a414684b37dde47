"""Test whether a judge errs on newly labelled rows as on the rows that it was calibrated with."""

from dataclasses import dataclass

import numpy as np

from metric_core.calibration.beta_means import BetaMean
from metric_core.calibration.judge_error import JudgeErrorFit

LEVEL = 0.05
"""Probability that an audit finds a difference although there is none."""
_QUANTILES = 2000
_SEEN = 3.08
"""Standard errors of a difference that four of five audits find: normal quantiles of 1 - LEVEL / 4 and of 0.8."""


@dataclass(frozen=True, slots=True)
class ClassChange:
    """Mean score of rows with one label, before and now.

    Args:
        before: Mean score on the rows of the calibration.
        now: Mean score on the newly labelled rows.
        p: P-value of "they are equal".
        seen: Difference that an audit with as many labels finds in four of five cases.
    """

    before: float
    now: float
    p: float
    seen: float


@dataclass(frozen=True, slots=True)
class Transfer:
    """Result of an audit.

    Args:
        p: P-value of "the judge errs as on the rows of the calibration".
        good: Change of the scores of rows with the highest label; None without such rows.
        bad: Change of the scores of rows with the lowest label; None without such rows.
    """

    p: float
    good: ClassChange | None
    bad: ClassChange | None

    @property
    def holds(self) -> bool:
        """Whether the audit found no difference. With few labels, that says little: see `ClassChange.seen`."""
        return self.p > LEVEL


def check_transfer(before: JudgeErrorFit, now: JudgeErrorFit) -> Transfer:
    """Compare the errors of a judge on two sets of labelled rows, for good and for bad rows.

    The share of good rows may differ. The p-value is the smaller of the two, times two (Bonferroni).

    Args:
        before: Error on the rows of the calibration.
        now: Error on the newly labelled rows.

    >>> from metric_core.calibration.judge_error import estimate_judge_error
    >>> labels, scores = np.repeat([0.0, 1.0], 30), np.repeat([0.0, 1.0, 0.0, 1.0], [24, 6, 2, 28])
    >>> before = estimate_judge_error(labels, scores, bounds=(0, 1))
    >>> lenient = estimate_judge_error(labels, np.repeat([0.0, 1.0, 0.0, 1.0], [6, 24, 2, 28]), bounds=(0, 1))
    >>> check_transfer(before, before).holds, check_transfer(before, lenient).holds
    (True, False)
    """
    good = _change(before, now, is_good=True)
    bad = _change(before, now, is_good=False)
    tests = [change.p for change in (good, bad) if change is not None]
    return Transfer(min([1.0, *(len(tests) * p for p in tests)]), good, bad)


def _change(before: JudgeErrorFit, now: JudgeErrorFit, *, is_good: bool) -> ClassChange | None:
    means = [error.bad + error.gain if is_good else error.bad for error in (before, now)]
    variances = [_variance(error, is_good) for error in (before, now)]
    spread = float(np.sqrt(sum(variances)))
    if before.classes is not None and now.classes is not None:
        old, new = ((error.good if is_good else error.bad) for error in (before.classes, now.classes))
        p = _p_equal(old, new)
    else:
        from scipy.special import stdtr  # noqa: PLC0415 scipy loads slowly

        freedom = min(before.units, now.units) - 2
        p = float(2 * stdtr(freedom, -abs(means[1] - means[0]) / spread)) if spread > 0 and freedom > 0 else 1.0
    return ClassChange(means[0], means[1], p, _SEEN * spread)


def _variance(error: JudgeErrorFit, is_good: bool) -> float:
    return error.variance_bad + (error.variance_gain + 2 * error.covariance if is_good else 0.0)


def _p_equal(old: BetaMean, new: BetaMean) -> float:
    """Return the two-sided p-value of two equal means: twice the probability that the greater one is less."""
    shares = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    first, second = old.quantiles(shares), new.quantiles(shares)
    below = np.searchsorted(first, second, side="left") + np.searchsorted(first, second, side="right")
    share = float(below.mean() / 2 / _QUANTILES)
    return min(1.0, 2 * min(share, 1 - share))
