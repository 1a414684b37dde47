"""How sure a mean is: its bootstrap distribution, an interval for it, and the confidence that it lies below a bar.

The bootstrap is bias-corrected and accelerated (BCa; Efron 1987), its normal quantiles widened to Student's for few
units (Hesterberg 2015), because a plain percentile interval is too narrow there. Rows that belong together are drawn
as a whole. Interval and confidence come from one distribution, so that they never contradict each other.

Drawing every unit of every resample takes minutes where there are millions of them. Many units are drawn another way:
how often each value is drawn, where there are few different values, which is the same distribution; else the sums from
their limit, normal with the skewness of the units, which 20,000 units have reached.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEVEL = 0.95
RESAMPLES = 4999
SEED = 20240229

_BATCH_CELLS = 2_000_000
_MANY_UNITS = 20_000
_MANY_VALUES = 2_000
_ROUNDING = 1e-12
"""Sums that differ by less differ by rounding."""
_LEAST_SLACK = 1e-6
"""Where the acceleration leaves no more, an interval goes to the end of the distribution."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Between what a value lies, as sure as the text beside it says."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Units:
    """What is drawn: single rows, or groups of rows that belong together.

    Args:
        sums: the sum of the values of each unit.
        counts: the number of rows of each unit.
    """

    sums: Floats
    counts: Floats

    @classmethod
    def of(cls, values: Floats, groups: Sequence[str] | None = None) -> "Units":
        """Every row is a unit, or every group.

        >>> Units.of(np.array([1.0, 0.0, 0.5]), ["x", "y", "x"]).sums.tolist()
        [1.5, 0.0]
        """
        if groups is None:
            return cls(values, np.ones(len(values)))
        _, unit = np.unique(np.asarray(groups, dtype=object).astype(str), return_inverse=True)
        sums = np.bincount(unit, weights=values).astype(np.float64)
        return cls(sums, np.bincount(unit).astype(np.float64))

    def __len__(self) -> int:
        return len(self.sums)

    @property
    def mean(self) -> float:
        """The mean over rows."""
        return float(self.sums.sum() / self.counts.sum())

    @property
    def influence(self) -> Floats:
        """How far each unit pulls the mean away from what it is, but for a constant factor."""
        pull = self.sums - self.mean * self.counts
        pull[np.abs(pull) < _ROUNDING] = 0.0
        return pull


@dataclass(frozen=True, slots=True)
class MeanDistribution:
    """The bootstrap distribution of a mean.

    Args:
        mean: the mean itself.
        units: how many rows or groups it is made of.
        resampled: the means of the resamples, ascending; empty where all units pull alike.
        bias: the bias correction z0.
        acceleration: the acceleration a, at most 1/6 in size.
    """

    mean: float
    units: int
    resampled: Floats
    bias: float
    acceleration: float

    def interval(self, level: float = LEVEL) -> Interval:
        """Two-sided interval at a confidence level; each end alone holds at (1 + level) / 2."""
        from scipy.special import ndtr, stdtrit  # noqa: PLC0415 scipy loads slowly

        if not len(self.resampled):
            return Interval(self.mean, self.mean)
        tails = np.array([(1 - level) / 2, (1 + level) / 2])
        shifted = self.bias + self._widening * stdtrit(self.units - 1, tails)
        # Of few skewed units at a high level the denominator would pass 0, and the end land on the mean's other side.
        slack = np.maximum(1 - self.acceleration * shifted, _LEAST_SLACK)
        low, high = np.quantile(self.resampled, ndtr(self.bias + shifted / slack))
        return Interval(float(low), float(high))

    def confidence_below(self, bar: float) -> float:
        """Confidence that the true mean lies below a bar: the one-sided p-value of "it is at most the bar".

        Where all units pull alike there is no doubt: 0 or 1, and 0.5 for a mean that is the bar.
        """
        from scipy.special import ndtri, stdtr  # noqa: PLC0415 scipy loads slowly

        if not len(self.resampled):
            distance = 0.0 if abs(self.mean - bar) < _ROUNDING else self.mean - bar
            return float(0.5 - 0.5 * np.sign(distance))
        deviation = ndtri(_probability_below(self.resampled, bar)) - self.bias
        shifted = deviation / (1 + self.acceleration * deviation)
        return float(stdtr(self.units - 1, (shifted - self.bias) / self._widening))

    @property
    def _widening(self) -> float:
        return float(np.sqrt(self.units / (self.units - 1)))


def bootstrap_mean(units: Units, seed: int, label: str = "", resamples: int = RESAMPLES) -> MeanDistribution:
    """The bootstrap distribution of a mean over rows, the same at every call with the same arguments.

    Args:
        units: what is drawn, at least two.
        seed: where the drawing starts.
        label: what the mean is of; different labels draw differently, whatever is computed before them.
        resamples: how many means are drawn.

    >>> distribution = bootstrap_mean(Units.of(np.array([0.0, 0.5, 1.0, 0.5])), seed=1)
    >>> interval = distribution.interval()
    >>> distribution.mean, 0 <= interval.low < 0.5 < interval.high <= 1
    (0.5, True)
    """
    influence = units.influence
    if not influence.any():
        return MeanDistribution(units.mean, len(units), np.empty(0), 0.0, 0.0)
    from scipy.special import ndtri  # noqa: PLC0415 scipy loads slowly

    resampled = np.sort(_resampled_means(units, np.random.default_rng([seed, zlib.crc32(label.encode())]), resamples))
    acceleration = (influence**3).sum() / (influence**2).sum() ** 1.5 / 6
    bias = ndtri(_probability_below(resampled, units.mean))
    return MeanDistribution(units.mean, len(units), resampled, float(bias), float(acceleration))


def _resampled_means(units: Units, generator: np.random.Generator, resamples: int) -> Floats:
    single = bool((units.counts == 1).all())
    if len(units) >= _MANY_UNITS:
        values, times = np.unique(units.sums, return_counts=True) if single else (units.sums, np.empty(0))
        if len(values) > _MANY_VALUES:
            return _limit_of_means(units, generator, resamples)
        return generator.multinomial(len(units), times / len(units), size=resamples) @ values / len(units)
    batch = max(1, _BATCH_CELLS // len(units))
    means = np.empty(resamples)
    for start in range(0, resamples, batch):
        drawn = generator.integers(0, len(units), size=(min(batch, resamples - start), len(units)))
        rows = len(units) if single else units.counts[drawn].sum(axis=1)
        means[start : start + len(drawn)] = units.sums[drawn].sum(axis=1) / rows
    return means


def _limit_of_means(units: Units, generator: np.random.Generator, resamples: int) -> Floats:
    """Means drawn from the limit of their bootstrap distribution, with its skewness (Cornish-Fisher)."""
    influence = units.influence
    spread = np.sqrt((influence**2).sum())
    skewness = (influence**3).sum() / spread**3
    normal = generator.standard_normal(resamples)
    deviation = normal + skewness * (normal**2 - 1) / 6
    means: Floats = units.mean + deviation * spread / units.counts.sum()
    return means


def _probability_below(resampled: Floats, bar: float) -> float:
    """Share of the means below a bar, those at the bar by half; never 0 or 1, which no finite number can show."""
    below = np.searchsorted(resampled, bar - _ROUNDING, side="left")
    up_to = np.searchsorted(resampled, bar + _ROUNDING, side="right")
    least = 1 / (len(resampled) + 1)
    return float(np.clip((below + up_to) / 2 / len(resampled), least, 1 - least))
