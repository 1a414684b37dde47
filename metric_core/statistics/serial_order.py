"""Recognize rows whose order matters: consecutive rows score alike, so that they are not independent."""

import numpy as np

from metric_core.statistics.resampling import Floats

_SUSPECT = 3.09
"""Normal quantile of the correlation of consecutive rows from which on permutations confirm it: p = 0.001."""
_PERMUTATIONS = 1999
_AS_OFTEN = 1
"""Number of permutations that may be as correlated."""
_MANY_ROWS = 5_000
"""Number of rows from which on the normal limit needs no confirmation."""
_ROUNDING = 1e-9


def is_serial(values: Floats) -> bool:
    """Return whether consecutive values are alike by more than chance (p < 0.001).

    The test is about the correlation of each value with the next, by its normal limit (Wald and Wolfowitz 1943) and, if
    that is small, by permutations: few rows, or mostly equal ones, are far from the limit.

    Args:
        values: Values in the order of the file.

    >>> is_serial(np.repeat([0.2, 0.9, 0.4, 0.7], 10)), is_serial(np.resize([0.2, 0.9, 0.4, 0.7], 40))
    (True, False)
    """
    if len(values) < 3:
        return False
    off = values - values.mean()
    squares = float(off @ off)
    if squares < _ROUNDING:
        return False
    product = float(off[:-1] @ off[1:])
    if product / squares * np.sqrt(len(values)) <= _SUSPECT:
        return False
    if len(values) >= _MANY_ROWS:
        return True
    generator, least = np.random.default_rng(len(values)), product - _ROUNDING * squares
    as_correlated = 0
    for _ in range(_PERMUTATIONS):
        drawn = generator.permutation(off)
        as_correlated += float(drawn[:-1] @ drawn[1:]) >= least
        if as_correlated > _AS_OFTEN:
            return False
    return True
