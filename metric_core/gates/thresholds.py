"""What values say about a bar that their true mean is to keep to: how surely it is broken, how surely it is kept."""

from dataclasses import dataclass

from metric_core.gates.rules import Bar
from metric_core.statistics.resampling import Floats, Interval, MeanDistribution, Units, bootstrap_mean


@dataclass(frozen=True, slots=True)
class Finding:
    """What the values say.

    Args:
        observed: their mean.
        interval: the least and the most that the true mean may be, each at the level asked for.
        p_kept: p-value of "the bar is kept": small where it is broken by more than chance.
        p_broken: p-value of "the bar is broken": small where it is kept by more than chance.
    """

    observed: float
    interval: Interval
    p_kept: float
    p_broken: float


def mean_against_bar(units: Units, bar: Bar, level: float, seed: int, label: str) -> Finding:
    """What at least two rows or groups say, by the bootstrap of their mean.

    Args:
        units: the values.
        bar: what their true mean is to keep to.
        level: confidence level of each limit, in (0.5, 1).
        seed: where resampling starts.
        label: what the mean is of.

    >>> import numpy as np
    >>> units = Units.of(np.linspace(0.7, 1.0, 40))
    >>> finding = mean_against_bar(units, Bar(0.8), 0.95, 1, "faithfulness")
    >>> finding.p_broken < 0.05 < finding.p_kept
    True
    """
    distribution = bootstrap_mean(units, seed, label)
    interval = distribution.interval(2 * level - 1)
    if not len(distribution.resampled):
        return _certain(distribution, bar)
    below = distribution.confidence_below(bar.value)
    broken, kept = (1 - below, below) if bar.is_floor else (below, 1 - below)
    return Finding(distribution.mean, interval, p_kept=broken, p_broken=kept)


def share_against_bar(values: Floats, bar: Bar, level: float) -> Finding:
    """What rows that are all 0 or 1 say about the share of ones, exactly (Clopper and Pearson 1934).

    >>> import numpy as np
    >>> finding = share_against_bar(np.ones(30), Bar(0.95), 0.95)
    >>> round(finding.interval.low, 3), finding.p_broken > 0.05
    (0.905, True)
    """
    from scipy.special import bdtr, bdtrc, betaincinv  # noqa: PLC0415 scipy loads slowly

    rows, ones = len(values), int(values.sum())
    share = ones / rows
    interval = Interval(
        low=float(betaincinv(ones, rows - ones + 1, 1 - level)) if ones else 0.0,
        high=float(betaincinv(ones + 1, rows - ones, level)) if ones < rows else 1.0,
    )
    if bar.value <= 0 or bar.value >= 1:  # the end of the range: one row beyond it is proof, and none can show more
        is_kept = bar.is_kept_by(share)
        return Finding(share, interval, p_kept=float(is_kept), p_broken=float(not is_kept))
    at_most, at_least = bdtr(ones, rows, bar.value), bdtrc(ones - 1, rows, bar.value) if ones else 1.0
    kept, broken = (at_most, at_least) if bar.is_floor else (at_least, at_most)
    return Finding(share, interval, p_kept=float(kept), p_broken=float(broken))


def _certain(distribution: MeanDistribution, bar: Bar) -> Finding:
    """Values without any spread leave no doubt."""
    is_kept = bar.is_kept_by(distribution.mean)
    return Finding(distribution.mean, distribution.interval(), p_kept=float(is_kept), p_broken=float(not is_kept))
