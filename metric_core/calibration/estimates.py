"""Estimate a mean label, or a difference of two, with limits at any confidence level."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from metric_core.calibration.beta_means import BetaMean
from metric_core.statistics.bounded_means import BoundedMean
from metric_core.statistics.resampling import LEVEL, Floats, Interval

SHARE = Interval(0.0, 1.0)
"""Range of a mean label."""
DIFFERENCE = Interval(-1.0, 1.0)
"""Range of the difference of two mean labels."""

_STEPS = 30
_LEAST_TAIL = 1e-9


@dataclass(frozen=True, slots=True)
class Estimate(ABC):
    """An estimate of a mean label, or of a difference of two.

    Args:
        value: The estimate; None if the labelled rows do not determine it.
    """

    value: float | None

    @abstractmethod
    def limits(self, tail: float) -> Interval:
        """Return the lower and the upper limit, each wrong with about this probability.

        Args:
            tail: Probability, in (0, 1).
        """

    def strict_limits(self, tail: float) -> Interval:
        """Return limits for decisions; see `limits`. They err on the side of the wider interval."""
        return self.limits(tail)

    def interval(self, level: float = LEVEL) -> Interval:
        """Return the two-sided interval at a confidence level. It contains the value."""
        limits = self.limits((1 - level) / 2)
        if self.value is None:
            return limits
        return Interval(min(limits.low, self.value), max(limits.high, self.value))

    def p_at_most(self, threshold: float) -> float:
        """Return the p-value of "the true mean is at most the threshold": small if it lies above."""
        return _least_tail(lambda tail: self.strict_limits(tail).low > threshold)

    def p_at_least(self, threshold: float) -> float:
        """Return the p-value of "the true mean is at least the threshold": small if it lies below."""
        return _least_tail(lambda tail: self.strict_limits(tail).high < threshold)


def _least_tail(excludes: Callable[[float], bool]) -> float:
    """Return the smallest tail whose limit excludes a threshold, by bisection; 1 if none does."""
    low, high = _LEAST_TAIL, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if excludes(middle) else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class DrawnEstimate(Estimate):
    """An estimate from draws of its distribution.

    Args:
        value: Estimate from the rows as they are; None if they do not determine it.
        lows: Draws in ascending order; an undetermined draw is the least possible value.
        highs: Draws in ascending order; an undetermined draw is the greatest possible value.
        strict_lows: The same for lower limits of decisions.
        strict_highs: The same for upper limits of decisions.
    """

    lows: Floats
    highs: Floats
    strict_lows: Floats
    strict_highs: Floats

    def limits(self, tail: float) -> Interval:
        """Return the quantiles of the draws."""
        return Interval(float(np.quantile(self.lows, tail)), float(np.quantile(self.highs, 1 - tail)))

    def strict_limits(self, tail: float) -> Interval:
        """Return the quantiles of the draws with pseudo-rows at the unfavorable bounds."""
        return Interval(float(np.quantile(self.strict_lows, tail)), float(np.quantile(self.strict_highs, 1 - tail)))


@dataclass(frozen=True, slots=True)
class ExactEstimate(Estimate):
    """An estimate from labels alone: its limits are those of Clopper and Pearson for labels of 0 and 1.

    Args:
        value: Mean label.
        belief: Distribution of the mean with half a pseudo-row at each bound; None for too few units for an interval.
    """

    value: float
    belief: BetaMean | None

    def limits(self, tail: float) -> Interval:
        """Return the limits; the whole range for too few units."""
        if self.belief is None:
            return SHARE
        low, high = self.belief.shift(-0.5), self.belief.shift(0.5)
        return Interval(float(low.quantiles(np.array(tail))), float(high.quantiles(np.array(1 - tail))))


@dataclass(frozen=True, slots=True)
class RectifiedEstimate(Estimate):
    """The weighted mean score of all rows plus the mean of label - weighted score of labelled rows, by limits of each.

    Source: Zou and Donner, "Construction of confidence limits about effect measures" (2008).

    Args:
        score: Weighted mean score of all rows.
        scores: Its distribution, with half a pseudo-row at each bound.
        rectifier: Mean of label - weighted score of the labelled rows.
        correlation: Correlation of the two means.
        labels: Multiple of the present number of labels that the limits are for, or that strata are worth.
        within: Least and greatest possible value.
    """

    value: float
    score: float
    scores: BetaMean
    rectifier: BoundedMean
    correlation: float
    labels: float = 1.0
    within: Interval = SHARE

    def limits(self, tail: float) -> Interval:
        """Return the limits of the sum, with half a pseudo-row at each bound of both means."""
        scores = self.scores.quantiles(np.array([tail, 1 - tail]))
        return self._combine(scores, self.rectifier.interval(max(0.0, 1 - 2 * tail)))

    def strict_limits(self, tail: float) -> Interval:
        """Return the limits of the sum, with a pseudo-row at the unfavorable bound of both means."""
        pairs = ((self.scores.shift(-0.5), tail), (self.scores.shift(0.5), 1 - tail))
        scores = np.array([float(mean.quantiles(np.array(share))) for mean, share in pairs])
        return self._combine(
            scores, Interval(self.rectifier.limit_below(1 - tail), self.rectifier.limit_above(1 - tail))
        )

    def _combine(self, scores: Floats, rectifier: Interval) -> Interval:
        middle = self.rectifier.units.mean
        below = self._reach(self.score - scores[0], middle - rectifier.low)
        above = self._reach(scores[1] - self.score, rectifier.high - middle)
        return Interval(max(self.value - below, self.within.low), min(self.value + above, self.within.high))

    def _reach(self, of_scores: float, of_rectifier: float) -> float:
        first, second = max(0.0, of_scores), max(0.0, of_rectifier) / np.sqrt(self.labels)
        return float(np.sqrt(first**2 + second**2 + 2 * self.correlation * first * second))


@dataclass(frozen=True, slots=True)
class CombinedDifference(Estimate):
    """The difference of two estimates, from the limits of each (the method of variance estimates recovery).

    Source: Newcombe, "Interval estimation for the difference between independent proportions" (1998), method 10; Zou
    and Donner (2008). Estimates that depend on each other positively, such as those of the same rows, make it wider
    than necessary.

    Args:
        before: Estimate that is subtracted.
        after: Estimate that it is subtracted from.
    """

    value: float
    before: ExactEstimate | RectifiedEstimate
    after: ExactEstimate | RectifiedEstimate

    @classmethod
    def from_estimates(
        cls,
        before: ExactEstimate | RectifiedEstimate,
        after: ExactEstimate | RectifiedEstimate,
    ) -> "CombinedDifference":
        """Return the difference of two estimates, second minus first."""
        return cls(after.value - before.value, before, after)

    def limits(self, tail: float) -> Interval:
        """Return the limits of the difference."""
        a, b = self.before.limits(tail), self.after.limits(tail)
        below = float(np.hypot(self.after.value - b.low, a.high - self.before.value))
        above = float(np.hypot(b.high - self.after.value, self.before.value - a.low))
        return Interval(max(self.value - below, DIFFERENCE.low), min(self.value + above, DIFFERENCE.high))
