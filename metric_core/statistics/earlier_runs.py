"""Use earlier runs of the same rows for the interval of a difference of two runs.

If a row scored higher in the baseline than in the runs before it, it will probably fall in the second run, although
nothing changed. So a part of its deviation from them is subtracted from its difference (CUPED: Deng, Xu, Kohavi and
Walker, 2013). The expected deviation is 0 as long as only chance tells the earlier runs from the baseline. With a part
between 0 and 1 the result is a difference from a weighted mean of runs, so it has the bounds of a difference.

If the earlier runs and the baseline differ by more than their rows explain, something moves all rows of a run: nothing
is subtracted, and the interval allows for as much noise again. If the baseline alone may differ from them, it may be
another system, and nothing is subtracted either.
"""

from dataclasses import dataclass
from itertools import compress

import numpy as np

from metric_core.statistics.pairs import Pairs
from metric_core.statistics.resampling import LEVEL, Floats, Interval
from metric_core.statistics.shared_noise import find_shared_noise

LEAST_ROWS = 20
"""Fewest rows from which the part to subtract is estimated."""
LEAST_RUNS = 3
"""Fewest earlier runs that show whether something moves all rows of a run."""

_LARGEST_DEVIATION = 1.2816
"""Distance of the baseline from the runs before it, in standard errors, above which it may be another system."""
_LEAST_SCORED = 0.9
"""Share of the rows that an earlier run has to have scored."""


@dataclass(frozen=True, slots=True)
class EarlierRuns:
    """Evidence of earlier runs of the same rows about a difference.

    Args:
        runs: Number of runs before the baseline.
        weight: Part of the baseline that they stand for, from 0 to 1.
        estimate: Difference of the means, from a baseline of which they are this part.
        noise: Standard deviation by which all rows of a run move together; 0 if the runs show none, None if they are
            too few to tell.
    """

    runs: int
    weight: float
    estimate: float
    noise: float | None


@dataclass(frozen=True, slots=True)
class Adjusted:
    """Differences of rows, less what earlier runs predict.

    Args:
        mean: Their mean over rows, or by weight.
        noise: Standard deviation of the noise that all rows share, for normal limits.
        earlier: Runs that they rest on; None without earlier runs.
    """

    values: Floats
    mean: float
    noise: float = 0.0
    earlier: EarlierRuns | None = None

    def widen(self, interval: Interval) -> Interval:
        """Return the interval of the mean with the noise that all rows share.

        >>> Adjusted(np.array([0.1]), 0.1, noise=0.0).widen(Interval(0.0, 0.2))
        Interval(low=0.0, high=0.2)
        """
        mean, reach = self.mean, _limit() * self.noise
        low, high = (float(np.hypot(mean - end, reach)) for end in (interval.low, interval.high))
        return Interval(mean - low, mean + high) if self.noise else interval

    def moderate(self, p: float) -> float:
        """Return a two-sided p-value of the mean with the noise that all rows share."""
        mean = abs(self.mean)
        if not self.noise or not mean or p >= 1:
            return p
        from scipy.special import ndtr, ndtri  # noqa: PLC0415 scipy loads slowly

        return float(2 * ndtr(-mean / np.hypot(mean / ndtri(p / 2), self.noise)))


def adjust_differences(pairs: Pairs) -> Adjusted:
    """Return the differences of rows, less what earlier runs of the same rows predict.

    >>> generator = np.random.default_rng(1)
    >>> nights = (generator.random((6, 200)) < 0.8).astype(float)
    >>> pairs = Pairs(None, tuple(map(str, range(200))), nights[0], nights[1], None, earlier=nights[2:])
    >>> found = adjust_differences(pairs)
    >>> found.earlier.runs, found.earlier.noise, bool(found.values.var() < 0.7 * pairs.differences.var())
    (4, 0.0, True)
    """
    differences = pairs.differences
    mean = pairs.units(differences).mean
    if pairs.earlier is None or not len(pairs.earlier):
        return Adjusted(differences, mean)
    scored = ~np.isnan(pairs.earlier)
    runs = pairs.earlier[scored.mean(axis=1) >= _LEAST_SCORED]
    if not len(runs) or len(differences) < LEAST_ROWS:
        return Adjusted(differences, mean)
    noise, degrees = None, 0.0
    if len(runs) >= LEAST_RUNS:
        complete = ~np.isnan(runs).any(axis=0)
        groups = None if pairs.groups is None else list(compress(pairs.groups, complete))
        noise, degrees = find_shared_noise(np.vstack([runs, pairs.a])[:, complete], groups)
    if noise:
        from scipy.special import stdtrit  # noqa: PLC0415 scipy loads slowly

        widening = float(np.sqrt(2) * stdtrit(degrees, (1 + LEVEL) / 2)) / _limit()
        found = EarlierRuns(len(runs), 0.0, mean, noise)
        return Adjusted(differences, mean, noise * widening, found)
    numbers = (~np.isnan(runs)).sum(axis=0)
    means = np.nansum(runs, axis=0) / np.maximum(numbers, 1)
    deviations = np.where(numbers, means - pairs.a, 0.0)
    weight = 0.0 if _differs(pairs, deviations) else _weight(differences, deviations, len(runs))
    values = differences - weight * deviations if weight else differences
    mean = pairs.units(values).mean
    return Adjusted(values, mean, 0.0, EarlierRuns(len(runs), weight, mean, noise))


def _differs(pairs: Pairs, deviations: Floats) -> bool:
    """Return whether the baseline differs from the runs before it by more than one in five do by chance."""
    units = pairs.units(deviations)
    error = float(np.sqrt((units.influence**2).sum()))
    return abs(units.mean) * float(units.counts.sum()) > _LARGEST_DEVIATION * error


def _weight(differences: Floats, deviations: Floats, runs: int) -> float:
    """Return the part of the deviations that leaves the least variance, at most that of the runs among all."""
    variance = float(deviations.var())
    if variance <= 0:
        return 0.0
    covariance = float(((differences - differences.mean()) * (deviations - deviations.mean())).mean())
    return float(np.clip(covariance / variance, 0.0, runs / (runs + 1)))


def _limit() -> float:
    from scipy.special import ndtri  # noqa: PLC0415 scipy loads slowly

    return float(ndtri((1 + LEVEL) / 2))
