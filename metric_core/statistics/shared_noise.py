"""Estimate how much all rows of a run may move together for no reason that lasts, from the runs of an evaluation.

A server, a version of the judge or its load may move all scores of a run by a little. Rows are then not independent,
and no number of rows shows that it is noise. The runs do: the mean changes from run to run by more than its rows
explain. What they explain of a change is its standard error over rows; the variance that is left is twice that of a
run.

The estimate is the largest noise that earlier runs do not refute, so that it is wide where they are few. It rests on a
quantile of the squared changes, which drops and repairs, being few, move little. Noise that stays for weeks is not
seen: it is a change of the system as long as it stays.
"""

from collections.abc import Sequence
from math import inf, sqrt
from statistics import NormalDist

import numpy as np

from metric_core.statistics.bounded_means import LEAST_UNITS
from metric_core.statistics.resampling import Floats, Units

ASSUMED_NOISE = 0.02
"""Standard deviation, as a part of a metric's range, that is assumed as long as the runs are too few to refute it."""

_QUANTILE, _SQUARE = 0.8, 1.642374
"""The quantile of the squared changes, and its value for the square of a standard normal variable."""
_FREEDOM = 0.5
"""Degrees of freedom per change: a quantile tells less than the variance does, and neighbouring changes share a run."""
_LIMIT = 1.281552
"""Standard normal quantile of the limit: in nine of ten histories the noise is at most as large."""
_ERROR = 0.1
"""Share of the histories without shared noise in which some is found: a stricter test misses more of it."""
_TESTS = 10
_LARGEST_RATIO = 2.0
"""Largest limit, as a multiple of the estimated variance, if that exceeds the one that is assumed."""


def limit_shared_noise(steps: Sequence[tuple[float, float]], size: float = 1.0) -> float:
    """Return the largest standard deviation of what all rows of a run share that earlier runs do not refute.

    It is a part of the range of the metric.

    Args:
        steps: Change of the mean from each run to the next, and its standard error over rows.
        size: Range of the metric.

    >>> quiet = [(0.004, 0.01), (-0.012, 0.01)]
    >>> [round(limit_shared_noise(quiet * count), 4) for count in (0, 1, 5, 20, 100)]
    [0.02, 0.02, 0.0103, 0.0055, 0.0033]
    >>> round(limit_shared_noise([(0.03, 0.01), (-0.03, 0.01)] * 50), 3)
    0.018
    """
    if not steps:
        return ASSUMED_NOISE
    changes, errors = (np.array(steps).T / size) ** 2
    of_rows = float(errors.mean()) / 2
    found = max(0.0, float(np.quantile(changes / _SQUARE - errors, _QUANTILE))) / 2
    ratio = _low_ratio(_FREEDOM * len(steps))
    limit = (of_rows + found) / ratio - of_rows if ratio else inf
    return sqrt(min(limit, max(_LARGEST_RATIO * found, ASSUMED_NOISE**2)))


def find_shared_noise(scores: Floats, groups: Sequence[str] | None = None) -> float:
    """Return the standard deviation by which all rows of a run move together; 0 if their rows explain what runs differ.

    An analysis of variance of runs and rows. Unlike the limit, which keeps alarms quiet for years, this is what a few
    runs show: noise that is smaller than that of the rows is often missed.

    Args:
        scores: Scores of the same rows in several runs, as runs x rows.
        groups: Name of the group of each row; None if rows are independent.

    >>> generator = np.random.default_rng(1)
    >>> rows = generator.normal(0, 0.1, (10, 300))
    >>> find_shared_noise(rows), round(find_shared_noise(rows + generator.normal(0, 0.02, (10, 1))), 3)
    (0.0, 0.014)
    """
    from scipy.special import fdtrc  # noqa: PLC0415 scipy loads slowly

    runs, rows = scores.shape
    means = scores.mean(axis=1)
    rest = scores - scores.mean(axis=0) - (means - means.mean())[:, None]
    sums = rest if groups is None else np.array([Units.from_values(run, groups).sums for run in rest])
    units = sums.shape[1]
    if units < LEAST_UNITS:
        return 0.0
    between = float(means.var(ddof=1))
    of_rows = float((sums**2).sum()) / rows**2 * units / (units - 1) / (runs - 1)
    excess = between - of_rows
    if excess <= 0 or (of_rows and fdtrc(runs - 1, (runs - 1) * (units - 1), between / of_rows) > _ERROR):
        return 0.0
    return sqrt(excess)


def limit_deviations(error: float, runs: int) -> float:
    """Return the standard deviations that normal noise of runs exceeds by chance in a share of the years.

    A run is compared with two baselines, and so is the mean of three runs; as the noise is estimated, they count as
    ten tests.

    Args:
        error: Share of the years.
        runs: Number of runs per year.

    >>> [round(limit_deviations(0.05, runs), 2) for runs in (53, 366, 2196)]
    [3.73, 4.19, 4.58]
    """
    return NormalDist().inv_cdf(1 - error / (_TESTS * runs))


def _low_ratio(freedom: float) -> float:
    """Return the tenth percentile of an estimated variance, as a part of the true one; 0 for less than one degree.

    The approximation of chi square by Wilson and Hilferty.

    Args:
        freedom: Degrees of freedom.
    """
    spread = 2 / (9 * freedom)
    return max(0.0, 1 - spread - _LIMIT * sqrt(spread)) ** 3
