"""Compute e-values and limits of the mean of bounded differences by bets against "the mean is not lower".

A part s of the money is staked against each row in turn, which multiplies it by 1 - s x; `docs/design/alarms.md` says
why the money at the end is an e-value. Several stakes are tried with a part of the money each; the sum does not depend
on the order of the rows. Of rows that belong together, the mean is bet on: one difference per group.

Source: Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting" (2024).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from metric_core.statistics.resampling import Floats

Bools = NDArray[np.bool_]

MOST_STAKED = 0.99
"""Largest part of the money that is staked on a row."""

_STAKES = (2.0, 3.5, 6.0, 10.0)
"""Stakes in units of `sqrt(2 log c / n)`: the best ones for differences with a standard deviation of 1 / stake."""
_LOG_E_VALUE = 13.0
"""Logarithm of the e-value c that an alarm needs, roughly."""
_STEPS = 20
"""Number of halvings in the search of a limit, which is exact to six digits."""
_PER_LOGARITHM = 64
"""Number of factors, from 0.01 to 1.99, that are multiplied before the logarithm is taken, which takes much longer."""


def log_e_values(differences: Floats, drop: float | Floats = 0.0) -> Floats:
    """Return the logarithm of the e-value against "the mean of differences is at least -drop".

    It is large if the mean is lower. Its expected value is at most 1 if the true mean over all units is at least -drop
    and the units are independent.

    Args:
        differences: Difference of each unit (a row, or the mean of a group of rows) and metric, as units x metrics,
            from -1 to 1: negative if the unit became worse, NaN without a value.
        drop: Drop that is allowed, from 0 to 1; one for all metrics, or one for each.

    >>> fell = np.array([[-1.0]] * 4 + [[0.0]] * 16)
    >>> round(float(np.exp(log_e_values(fell))[0]), 2)
    15.68
    """
    return _log_wealth((differences + drop) / (1.0 + drop))


def log_e_values_above(differences: Floats, drop: float | Floats) -> Floats:
    """Return the logarithm of the e-value against "the mean of differences is at most -drop": no less was lost.

    Args:
        differences: Difference of each unit and metric, as units x metrics; NaN without a value.
        drop: Drop, from -1 to 1; one for all metrics, or one for each.
    """
    return _log_wealth(-(differences + drop) / (1.0 - np.minimum(drop, 0.0)))


def _log_wealth(gains: Floats) -> Floats:
    """Return the logarithm of the money after bets against gains of at most 1, with a quarter on each stake."""
    has_value = ~np.isnan(gains)
    units = np.maximum(has_value.sum(axis=0), 1)
    stakes = np.minimum(MOST_STAKED, np.multiply.outer(_STAKES, np.sqrt(2 * _LOG_E_VALUE / units)))
    count, columns = gains.shape
    known = np.zeros((_PER_LOGARITHM * -(-count // _PER_LOGARITHM), columns))
    np.copyto(known[:count], gains, where=has_value)
    wealth = [_log_of_product(known.reshape(_PER_LOGARITHM, -1, columns), stake) for stake in stakes]
    total: Floats = np.logaddexp.reduce(wealth, axis=0) - np.log(len(_STAKES))
    return total


def _log_of_product(gains: Floats, stake: Floats) -> Floats:
    """Return the logarithm of the product of `1 - stake * gains` over all but the last axis."""
    factors = gains * stake
    np.subtract(1.0, factors, out=factors)
    logarithm: Floats = np.log(np.multiply.reduce(factors, axis=0)).sum(axis=0)
    return logarithm


def largest_drop(is_refuted: Callable[[Floats], Bools], streams: int) -> Floats:
    """Return the largest drop that is refuted, from 0 to 1, per stream; 0 if none is.

    Args:
        is_refuted: Tells for a drop per stream which are refuted; if a drop is, all smaller ones are.
    """
    low, high = np.zeros(streams), np.ones(streams)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        refuted = is_refuted(middle)
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return low


def smallest_drop(is_refuted: Callable[[Floats], Bools], streams: int) -> Floats:
    """Return the smallest drop that is refuted, from 0 to 1, per stream; 1 if none is.

    Args:
        is_refuted: Tells for a drop per stream which are refuted; if a drop is, all larger ones are.
    """
    return 1.0 - largest_drop(lambda rest: is_refuted(1.0 - rest), streams)


def average_over_all_sets(e_values: Floats, shares: Floats) -> Floats:
    """Return the e-value of each hypothesis that counts when many are tested: the least average over all sets.

    A hypothesis is refuted among many if the weighted average of the e-values of every set of hypotheses that has it
    reaches the threshold (closed testing; Vovk and Wang 2021, section 5). This refutes all that testing each at its
    share of the error does, and more if several metrics fall together.

    Args:
        shares: Share of the error of each, in total 1.

    >>> average_over_all_sets(np.array([100.0, 60.0, 0.0]), np.array([0.25, 0.25, 0.5])).tolist()
    [33.333333333333336, 20.0, 0.0]
    """
    order = np.argsort(e_values, kind="stable")
    weighted, weights = e_values[order] * shares[order], shares[order]
    total, weight = np.concatenate([[0.0], weighted.cumsum()]), np.concatenate([[0.0], weights.cumsum()])
    least = np.empty(len(e_values))
    for place, hypothesis in enumerate(order):
        # Only smaller e-values lower the average; the smallest lower it most.
        averages = (total[: place + 1] + weighted[place]) / (weight[: place + 1] + weights[place])
        least[hypothesis] = averages.min()
    return least
