"""Bootstrap means: intervals, and the confidence that a mean is below a threshold.

The bootstrap is bias-corrected and accelerated (BCa; Efron 1987). Its normal quantiles are widened to Student's for few
units (Hesterberg 2015), for which a plain percentile interval is too narrow. Grouped rows are resampled together.
Interval and confidence come from the same distribution, so they never contradict each other.

Drawing every unit of every resample takes minutes for millions of units. From 20,000 units on there are two shortcuts:
with few distinct values, the number of draws of each value is drawn, which gives the same distribution; otherwise means
are drawn from the limiting distribution, a normal distribution corrected for the skewness of the units.
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
_LEAST_TAIL = 1e-12
"""Lower limit of a tail that is taken for a few groups, one of them large."""
_ROUNDING = 1e-12
"""Largest difference of sums that counts as a rounding error."""
_LEAST_SLACK = 1e-6
"""Lower limit of the denominator of the BCa formula; at the limit, an interval extends to the end of the resamples."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of a value."""

    low: float
    high: float


def effective_number(counts: Floats) -> float:
    """Return the number of equal groups whose mean would be as uncertain as that of these groups, and be known to be.

    The effective number for the mean is `sum(n)² / sum(n²)` (Kish, "Survey Sampling", 1965); that for its variance,
    `sum(n²)² / sum(n⁴)`, is lower if few groups are large. This is their geometric mean.

    Args:
        counts: Number of rows of each group.

    >>> effective_number(np.full(12, 5.0)), round(effective_number(np.array([100.0] + [1.0] * 900)), 1)
    (12.0, 10.4)
    """
    if not len(counts) or counts.min() == counts.max():
        return float(len(counts))
    shares = counts / counts.mean()
    squares = shares**2
    return round(float(len(counts) * np.sqrt(squares.sum() / (squares @ squares))), 9)


@dataclass(frozen=True, slots=True)
class Units:
    """Units of resampling: single rows, or groups of rows.

    Args:
        sums: Sum of the values of each unit.
        counts: Number of rows of each unit.
    """

    sums: Floats
    counts: Floats

    @classmethod
    def from_values(cls, values: Floats, groups: Sequence[str] | None = None) -> "Units":
        """Create units from values; every row is a unit, or every group if groups are given.

        >>> Units.from_values(np.array([1.0, 0.0, 0.5]), ["x", "y", "x"]).sums.tolist()
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
    def effective(self) -> float:
        """Effective number of the units, see `effective_number`."""
        return effective_number(self.counts)

    @property
    def independent(self) -> int:
        """The effective number as a person reads it, rounded down."""
        return int(self.effective)

    def widen_tail(self, share: float) -> float:
        """Return the quantile to take of a distribution that knows the number of the units, not that sizes differ.

        Of equal units it is the share itself, of others one nearer to 0 or 1.

        Args:
            share: Probability, in (0, 1).

        >>> equal, uneven = (Units(np.zeros(40), np.array([size] + [1.0] * 39)) for size in (1.0, 8.0))
        >>> equal.widen_tail(0.025), round(uneven.widen_tail(0.025), 4)
        (0.025, 0.0073)
        """
        return self._exchanged(share, self.effective, len(self))

    def moderate_p(self, p: float) -> float:
        """Return the p-value that belongs to one of such a distribution; the inverse of `widen_tail`.

        >>> uneven = Units(np.zeros(40), np.array([8.0] + [1.0] * 39))
        >>> round(uneven.moderate_p(uneven.widen_tail(0.025)), 6)
        0.025
        """
        return self._exchanged(p, len(self), self.effective)

    @property
    def spread(self) -> float:
        """Factor by which the 95 % interval of a nearly normal mean is wider than of as many equal units."""
        from scipy.special import ndtri  # noqa: PLC0415 scipy loads slowly

        tail = (1 - LEVEL) / 2
        widened = max(self.widen_tail(tail), _LEAST_TAIL)
        return 1.0 if widened == tail else float(ndtri(widened) / ndtri(tail))

    @staticmethod
    def _exchanged(share: float, units: float, others: float) -> float:
        """Return the probability with so many other units that is as far from the middle as one with some units."""
        if others == units or not 0 < share < 1:
            return share
        from scipy.special import stdtr, stdtrit  # noqa: PLC0415 scipy loads slowly

        factor = np.sqrt(units / (units - 1) * (others - 1) / others)
        return float(stdtr(others - 1, factor * stdtrit(units - 1, share)))

    @property
    def mean(self) -> float:
        """Mean over rows."""
        return float(self.sums.sum() / self.counts.sum())

    @property
    def influence(self) -> Floats:
        """Influence of each unit on the mean, up to a constant factor."""
        pull = self.sums - self.mean * self.counts
        pull[np.abs(pull) < _ROUNDING] = 0.0
        return pull


@dataclass(frozen=True, slots=True)
class MeanDistribution:
    """Bootstrap distribution of a mean.

    Args:
        mean: Observed mean.
        units: Number of rows, or effective number of groups.
        resampled: Means of the resamples in ascending order; empty if all units have the same influence.
        bias: Bias correction z0.
        acceleration: Acceleration a, at most 1/6 in absolute value.
    """

    mean: float
    units: float
    resampled: Floats
    bias: float
    acceleration: float

    def interval(self, level: float = LEVEL) -> Interval:
        """Return the two-sided interval at a confidence level; each end holds at confidence (1 + level) / 2."""
        from scipy.special import ndtr, stdtrit  # noqa: PLC0415 scipy loads slowly

        if not len(self.resampled):
            return Interval(self.mean, self.mean)
        tails = np.array([(1 - level) / 2, (1 + level) / 2])
        shifted = self.bias + self._widening * stdtrit(self.units - 1, tails)
        # For few skewed units at a high level, the denominator could change sign and move the end across the mean.
        slack = np.maximum(1 - self.acceleration * shifted, _LEAST_SLACK)
        low, high = np.quantile(self.resampled, ndtr(self.bias + shifted / slack))
        return Interval(float(low), float(high))

    def confidence_below(self, threshold: float) -> float:
        """Return the confidence that the true mean is below a threshold: a one-sided p-value.

        If all units have the same influence, this is 0 or 1, or 0.5 for a mean equal to the threshold.
        """
        from scipy.special import ndtri, stdtr  # noqa: PLC0415 scipy loads slowly

        if not len(self.resampled):
            distance = 0.0 if abs(self.mean - threshold) < _ROUNDING else self.mean - threshold
            return float(0.5 - 0.5 * np.sign(distance))
        deviation = ndtri(_probability_below(self.resampled, threshold)) - self.bias
        shifted = deviation / (1 + self.acceleration * deviation)
        return float(stdtr(self.units - 1, (shifted - self.bias) / self._widening))

    @property
    def _widening(self) -> float:
        return float(np.sqrt(self.units / (self.units - 1)))


def bootstrap_mean(units: Units, seed: int, label: str = "", resamples: int = RESAMPLES) -> MeanDistribution:
    """Return the bootstrap distribution of a mean over rows; the result is deterministic.

    Args:
        units: Units to resample, at least two.
        label: Name of the mean; different labels use independent random streams.

    >>> distribution = bootstrap_mean(Units.from_values(np.array([0.0, 0.5, 1.0, 0.5])), seed=1)
    >>> interval = distribution.interval()
    >>> distribution.mean, 0 <= interval.low < 0.5 < interval.high <= 1
    (0.5, True)
    """
    influence = units.influence
    if not influence.any():
        return MeanDistribution(units.mean, units.effective, np.empty(0), 0.0, 0.0)
    from scipy.special import ndtri  # noqa: PLC0415 scipy loads slowly

    resampled = np.sort(_resampled_means(units, np.random.default_rng([seed, zlib.crc32(label.encode())]), resamples))
    acceleration = (influence**3).sum() / (influence**2).sum() ** 1.5 / 6
    bias = ndtri(_probability_below(resampled, units.mean))
    return MeanDistribution(units.mean, units.effective, resampled, float(bias), float(acceleration))


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
    """Draw means from the limit of their bootstrap distribution, corrected for skewness (Cornish-Fisher)."""
    influence = units.influence
    spread = np.sqrt((influence**2).sum())
    skewness = (influence**3).sum() / spread**3
    normal = generator.standard_normal(resamples)
    deviation = normal + skewness * (normal**2 - 1) / 6
    means: Floats = units.mean + deviation * spread / units.counts.sum()
    return means


def _probability_below(resampled: Floats, threshold: float) -> float:
    """Return the share of means below a threshold, with ties counted half; never exactly 0 or 1."""
    below = np.searchsorted(resampled, threshold - _ROUNDING, side="left")
    up_to = np.searchsorted(resampled, threshold + _ROUNDING, side="right")
    least = 1 / (len(resampled) + 1)
    return float(np.clip((below + up_to) / 2 / len(resampled), least, 1 - least))
