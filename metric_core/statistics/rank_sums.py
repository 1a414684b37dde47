"""Test by ranks whether values go with each other, over rows or groups of them."""

from collections.abc import Sequence

import numpy as np

from metric_core.statistics.resampling import Floats, Units


def standardize_sum(values: Floats, groups: Sequence[str] | None) -> float:
    """Return the sum of values per standard deviation that it would have if each were as likely positive.

    Args:
        groups: Group of each value; None if they are independent.
    """
    sums = Units.from_values(values, groups).sums
    spread = float(np.sqrt(sums @ sums))
    return float(sums.sum()) / spread if spread else 0.0


def center(values: Floats) -> Floats:
    """Return values less their mean."""
    found: Floats = values - values.mean()
    return found


def ranks(values: Floats) -> Floats:
    """Return the ranks of values; equal ones have the mean of theirs.

    >>> ranks(np.array([5.0, 7.0, 5.0])).tolist()
    [1.5, 3.0, 1.5]
    """
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    found: Floats = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return found
