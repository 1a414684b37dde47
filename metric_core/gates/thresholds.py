"""Test a mean, a quantile or a share against a threshold."""

from dataclasses import dataclass, replace

import numpy as np

from metric_core.gates.rules import Threshold
from metric_core.statistics.bounded_means import BoundedMean, Bounds
from metric_core.statistics.quantiles import estimate_quantile
from metric_core.statistics.resampling import SEED, Floats, Interval, Units
from metric_core.statistics.summary import RowValues


@dataclass(frozen=True, slots=True)
class Confidence:
    """Confidence that a test of a value requires.

    Args:
        level: Confidence level of the limit that shows that the threshold is met, in (0.5, 1).
        looks: Number of runs that share the error of the limit that shows that it is violated.
        noise: Amount by which the judge alone may have moved a mean; without bounds it is left out.
    """

    level: float
    looks: int = 1
    noise: float = 0.0

    @property
    def of_failure(self) -> float:
        """Confidence level of the limit that shows that the threshold is violated."""
        return self.level if self.looks == 1 else 1 - (1 - self.level) / self.looks


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of testing values against a threshold.

    Args:
        observed: Mean, or quantile, of the values.
        interval: Lower and upper limit of the true value, each at the level of the gate; None for a quantile without
            one of them, for too few rows.
        p_met: P-value of "the threshold is met": small if it is violated significantly.
        p_violated: P-value of "the threshold is violated": small if it is met significantly.
        p_nights: P-value of "the threshold was met every night", for nights of new rows; None for one look.
        judged_again: The findings if the judge's noise had moved the mean up, and down; empty if it is not known.
    """

    observed: float
    interval: Interval | None
    p_met: float
    p_violated: float
    p_nights: float | None = None
    judged_again: tuple["Finding", ...] = ()

    def p_failed(self, looks: int) -> float:
        """Return the p-value of "the threshold is met" that holds over all looks.

        The nights are evidence only as long as the present one violates the threshold, too.

        >>> Finding(0.8, None, 0.001, 1.0).p_failed(10), Finding(0.8, None, 0.2, 0.8, p_nights=0.03).p_failed(10)
        (0.01, 0.03)
        """
        if self.p_nights is None:
            return min(1.0, looks * self.p_met)
        return self.p_nights if self.p_met < self.p_violated else 1.0


@dataclass(frozen=True, slots=True)
class RandomStream:
    """A random stream: the same seed and label give the same numbers, different labels independent ones."""

    seed: int = SEED
    label: str = ""


STREAM = RandomStream()


def check_mean(
    units: Units, threshold: Threshold, confidence: Confidence, bounds: Bounds, stream: RandomStream = STREAM
) -> Finding:
    """Test the mean of at least two rows or groups.

    Each limit adds one pseudo-row at the unfavorable bound (`BoundedMean`), exact for values of 0 and 1. A threshold at
    a bound is violated if a single row is not at the bound.

    Args:
        bounds: Bounds of the values; extended to values beyond them.

    >>> units = Units.from_values(np.linspace(0.7, 1.0, 100))
    >>> finding = check_mean(units, Threshold(0.8), Confidence(0.95), Bounds(0.0, 1.0))
    >>> finding.p_violated < 0.05 < finding.p_met
    True
    >>> ones = Units.from_values(np.ones(30))
    >>> finding = check_mean(ones, Threshold(0.95), Confidence(0.95), Bounds(0.0, 1.0))
    >>> round(finding.interval.low, 3), finding.p_violated > 0.05
    (0.905, True)
    """
    mean = BoundedMean(units, bounds.around(units.sums / units.counts), stream.seed, stream.label)
    interval = Interval(mean.limit_below(confidence.level), mean.limit_above(confidence.level))
    if threshold.value <= mean.bounds.low or threshold.value >= mean.bounds.high:
        is_met = threshold.is_met_by(units.mean)
        return Finding(units.mean, interval, p_met=float(is_met), p_violated=float(not is_met))

    def find(value: float) -> Finding:
        at_least, at_most = mean.p_at_least(value), mean.p_at_most(value)
        met, violated = (at_least, at_most) if threshold.is_floor else (at_most, at_least)
        return Finding(units.mean, interval, p_met=met, p_violated=violated)

    ends = (threshold.value - confidence.noise, threshold.value + confidence.noise) if confidence.noise else ()
    return replace(find(threshold.value), judged_again=tuple(map(find, ends)))


def check_quantile(
    rows: RowValues, threshold: Threshold, confidence: Confidence, share: float, stream: RandomStream = STREAM
) -> Finding:
    """Test a quantile of rows by the share of rows that meet the threshold (for the median, the sign test).

    The true quantile is at most a threshold if at least its share of all rows are.

    Args:
        share: Share of the rows that have at most the value of the quantile.

    >>> rows = RowValues(np.linspace(0.7, 1.0, 31), groups=None, weights=None)
    >>> finding = check_quantile(rows, Threshold(0.8), Confidence(0.95), 0.5)
    >>> round(finding.observed, 3), finding.p_violated < 0.05
    (0.85, True)
    """
    least = 1 - share if threshold.is_floor else share
    units = Units.from_values(meets(rows.values, threshold), rows.groups, rows.weights)
    found = check_mean(units, Threshold(least), confidence, Bounds(0.0, 1.0), stream)
    quantile = estimate_quantile(rows.values, share, confidence.level, rows.groups, rows.weights)
    ends = (quantile.low, quantile.high)
    interval = None if ends[0] is None or ends[1] is None else Interval(ends[0], ends[1])
    return Finding(quantile.value, interval, p_met=found.p_met, p_violated=found.p_violated)


def meets(values: Floats, threshold: Threshold) -> Floats:
    """Return 1 for each value that meets the threshold, else 0.

    >>> meets(np.array([0.5, 0.8]), Threshold(0.8)).tolist()
    [0.0, 1.0]
    """
    return np.array([threshold.is_met_by(value) for value in values], dtype=np.float64)
