"""Estimate how much all rows of a run move together for no reason that lasts, from the runs of an evaluation.

A server, a version of the judge or its load may move all scores of a run by a little. Rows are then not independent,
and no number of rows shows that it is noise. The runs do: the mean changes from run to run by more than its rows
explain. What they explain of a change is its standard error over rows; the variance that is left is twice that of a
run.

The estimate is one of medians, so drops and repairs, which move few of the changes, do not inflate it. Noise that stays
for weeks is not seen: it is a change of the system as long as it stays.
"""

from collections.abc import Sequence
from math import sqrt

import numpy as np

from metric_core.statistics.resampling import Floats

LEAST_STEPS = 10
"""Number of changes from run to run from which the noise is estimated; with fewer, it counts as 0."""
MARGIN = 3.0
"""Number of standard deviations of shared noise that are no evidence of a drop, of a mean of runs and its baseline."""

_MEDIAN = 0.454936
"""Median of the square of a standard normal variable."""
_DEVIATIONS = 1.5
"""Standard deviations by which the number of large changes has to exceed a half to be no chance."""
_HALVINGS = 40


def estimate_shared_noise(steps: Sequence[tuple[float, float]]) -> float:
    """Return the standard deviation of what all rows of a run share; 0 if there are few runs, or no sign of it.

    Args:
        steps: Change of the mean from each run to the next, and its standard error over rows.

    >>> estimate_shared_noise([(0.004, 0.01), (-0.012, 0.01)] * 20)
    0.0
    >>> round(estimate_shared_noise([(0.03, 0.01), (-0.03, 0.01)] * 20), 3)
    0.031
    """
    known = np.array([step for step in steps if step[1] > 0]).reshape(-1, 2)
    changes, errors = known.T**2
    if len(known) < LEAST_STEPS or _is_chance(changes / errors):
        return 0.0
    low, high = 0.0, float(changes.max() / _MEDIAN)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_more = np.median(changes / (errors + middle)) > _MEDIAN
        low, high = (middle, high) if is_more else (low, middle)
    return sqrt(low / 2)


def _is_chance(ratios: Floats) -> bool:
    large = int((ratios > _MEDIAN).sum())
    return large <= len(ratios) / 2 + _DEVIATIONS * sqrt(len(ratios)) / 2
