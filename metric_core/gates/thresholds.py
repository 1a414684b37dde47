"""Tests of a mean or a share against a threshold."""

from dataclasses import dataclass

from metric_core.gates.rules import Threshold
from metric_core.statistics.resampling import Floats, Interval, MeanDistribution, Units, bootstrap_mean


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of testing values against a threshold.

    Args:
        observed: Mean of the values.
        interval: Lower and upper limit of the true mean, each at the requested level.
        p_met: P-value of "the threshold is met": small if it is violated significantly.
        p_violated: P-value of "the threshold is violated": small if it is met significantly.
    """

    observed: float
    interval: Interval
    p_met: float
    p_violated: float


def check_mean(units: Units, threshold: Threshold, level: float, seed: int, label: str) -> Finding:
    """Test the mean of at least two rows or groups by bootstrap.

    Args:
        units: Values to test.
        threshold: Threshold for the true mean.
        level: Confidence level of each limit, in (0.5, 1).
        seed: Seed of resampling.
        label: Name of the mean; different labels use independent random streams.

    >>> import numpy as np
    >>> units = Units.from_values(np.linspace(0.7, 1.0, 40))
    >>> finding = check_mean(units, Threshold(0.8), 0.95, 1, "faithfulness")
    >>> finding.p_violated < 0.05 < finding.p_met
    True
    """
    distribution = bootstrap_mean(units, seed, label)
    interval = distribution.interval(2 * level - 1)
    if not len(distribution.resampled):
        return _certain_finding(distribution, threshold)
    below = distribution.confidence_below(threshold.value)
    violated, met = (1 - below, below) if threshold.is_floor else (below, 1 - below)
    return Finding(distribution.mean, interval, p_met=violated, p_violated=met)


def check_share(values: Floats, threshold: Threshold, level: float) -> Finding:
    """Test the share of ones among values that are all 0 or 1, exactly (Clopper and Pearson 1934).

    >>> import numpy as np
    >>> finding = check_share(np.ones(30), Threshold(0.95), 0.95)
    >>> round(finding.interval.low, 3), finding.p_violated > 0.05
    (0.905, True)
    """
    from scipy.special import bdtr, bdtrc, betaincinv  # noqa: PLC0415 scipy loads slowly

    rows, ones = len(values), int(values.sum())
    share = ones / rows
    interval = Interval(
        low=float(betaincinv(ones, rows - ones + 1, 1 - level)) if ones else 0.0,
        high=float(betaincinv(ones + 1, rows - ones, level)) if ones < rows else 1.0,
    )
    if threshold.value <= 0 or threshold.value >= 1:  # at the end of the range, a single row beyond it is proof
        is_met = threshold.is_met_by(share)
        return Finding(share, interval, p_met=float(is_met), p_violated=float(not is_met))
    at_most, at_least = bdtr(ones, rows, threshold.value), bdtrc(ones - 1, rows, threshold.value) if ones else 1.0
    met, violated = (at_most, at_least) if threshold.is_floor else (at_least, at_most)
    return Finding(share, interval, p_met=float(met), p_violated=float(violated))


def _certain_finding(distribution: MeanDistribution, threshold: Threshold) -> Finding:
    """Return the result for values without spread, which is certain."""
    is_met = threshold.is_met_by(distribution.mean)
    return Finding(distribution.mean, distribution.interval(), p_met=float(is_met), p_violated=float(not is_met))
