"""Tests of a mean or a share against a threshold."""

from dataclasses import dataclass

from metric_core.gates.rules import Bar
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


def mean_against_bar(units: Units, bar: Bar, level: float, seed: int, label: str) -> Finding:
    """Test the mean of at least two rows or groups by bootstrap.

    Args:
        units: Values to test.
        bar: Threshold for the true mean.
        level: Confidence level of each limit, in (0.5, 1).
        seed: Seed of resampling.
        label: Name of the mean; different labels use independent random streams.

    >>> import numpy as np
    >>> units = Units.of(np.linspace(0.7, 1.0, 40))
    >>> finding = mean_against_bar(units, Bar(0.8), 0.95, 1, "faithfulness")
    >>> finding.p_violated < 0.05 < finding.p_met
    True
    """
    distribution = bootstrap_mean(units, seed, label)
    interval = distribution.interval(2 * level - 1)
    if not len(distribution.resampled):
        return _certain(distribution, bar)
    below = distribution.confidence_below(bar.value)
    broken, kept = (1 - below, below) if bar.is_floor else (below, 1 - below)
    return Finding(distribution.mean, interval, p_met=broken, p_violated=kept)


def share_against_bar(values: Floats, bar: Bar, level: float) -> Finding:
    """Test the share of ones among values that are all 0 or 1, exactly (Clopper and Pearson 1934).

    >>> import numpy as np
    >>> finding = share_against_bar(np.ones(30), Bar(0.95), 0.95)
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
    if bar.value <= 0 or bar.value >= 1:  # at the end of the range, a single row beyond it is proof
        is_kept = bar.is_kept_by(share)
        return Finding(share, interval, p_met=float(is_kept), p_violated=float(not is_kept))
    at_most, at_least = bdtr(ones, rows, bar.value), bdtrc(ones - 1, rows, bar.value) if ones else 1.0
    kept, broken = (at_most, at_least) if bar.is_floor else (at_least, at_most)
    return Finding(share, interval, p_met=float(kept), p_violated=float(broken))


def _certain(distribution: MeanDistribution, bar: Bar) -> Finding:
    """Return the result for values without spread, which is certain."""
    is_kept = bar.is_kept_by(distribution.mean)
    return Finding(distribution.mean, distribution.interval(), p_met=float(is_kept), p_violated=float(not is_kept))
