"""Represent beliefs about the mean of values with bounds as Beta distributions.

Rows and pseudo-rows at the bounds get random weights with a Dirichlet distribution (a Bayesian bootstrap; Rubin 1981).
The mean and the variance of the weighted mean are known, and a Beta distribution with the same mean and variance is
close to its distribution. For values of 0 and 1 it is exact: with half a pseudo-row at each bound, it is the posterior
distribution of Jeffreys; with one at the bound that is unfavorable, its quantile is the limit of Clopper and Pearson
(1934). So rows that are all alike do not count as proof that others are like them.
"""

from dataclasses import dataclass

import numpy as np

from metric_core.statistics.resampling import Floats, Units

_ROUNDING = 1e-12
_MOST_CERTAIN = 1e12
"""Sum of the two parameters from which a distribution counts as a point."""
_GRID = np.linspace(-6, 6, 481)


@dataclass(frozen=True, slots=True)
class BetaMean:
    """A Beta distribution of a mean between two bounds.

    Args:
        above: First parameter: for 0 and 1, the number of ones with the pseudo-rows.
        below: Second parameter: the number of zeros with the pseudo-rows.
        low: Lower bound of the mean.
        high: Upper bound of the mean, above `low`.
    """

    above: float
    below: float
    low: float = 0.0
    high: float = 1.0

    @classmethod
    def from_units(
        cls, units: Units, bounds: tuple[float, float], at_low: float = 0.5, at_high: float = 0.5
    ) -> "BetaMean":
        """Return the distribution of the mean of units.

        Args:
            units: Rows or groups of rows, perhaps none. Pseudo-rows of groups are groups of average size. If groups
                have different sizes, the distribution is wider, see `Units.spread`.
            bounds: Least and greatest value; values beyond them extend them.
            at_low: Number of pseudo-rows at the lower bound.
            at_high: Number of pseudo-rows at the upper bound.

        >>> BetaMean.from_units(Units.from_values(np.array([1.0, 1.0, 0.0])), (0.0, 1.0))
        BetaMean(above=2.5, below=1.5, low=0.0, high=1.0)
        """
        means = units.sums / units.counts
        low, high = min(bounds[0], means.min(initial=np.inf)), max(bounds[1], means.max(initial=-np.inf))
        size = float(units.counts.mean()) if len(units) else 1.0
        shapes = np.append(np.ones(len(units)), [at_low, at_high])
        counts = np.append(units.counts, [size, size])
        sums = np.append((units.sums - low * units.counts) / (high - low), [0.0, size])
        mean = float((shapes @ sums) / (shapes @ counts))
        total = float(shapes.sum())
        influence = (sums - mean * counts) * total / (shapes @ counts)
        variance = float(shapes @ influence**2) / (total * (total + 1))
        if variance <= _ROUNDING * mean * (1 - mean) or not 0 < mean < 1:
            return cls(mean * _MOST_CERTAIN, (1 - mean) * _MOST_CERTAIN, low, high)
        strength = (mean * (1 - mean) / variance - 1) / units.spread**2
        return cls(round(mean * strength, 9), round((1 - mean) * strength, 9), low, high)

    @property
    def mean(self) -> float:
        """Mean of the distribution."""
        return self.low + (self.high - self.low) * self.above / (self.above + self.below)

    @property
    def variance(self) -> float:
        """Variance of the distribution."""
        total = self.above + self.below
        return (self.high - self.low) ** 2 * self.above * self.below / (total**2 * (total + 1))

    def shift(self, rows: float) -> "BetaMean":
        """Return the distribution with pseudo-rows moved from the lower to the upper bound, or back if negative.

        >>> BetaMean(2.5, 1.5).shift(-0.5)
        BetaMean(above=2.0, below=2.0, low=0.0, high=1.0)
        """
        return BetaMean(max(0.0, self.above + rows), max(0.0, self.below - rows), self.low, self.high)

    def strengthen(self, times: float) -> "BetaMean":
        """Return the distribution with the same mean that so many times as many rows would give.

        >>> BetaMean(2.5, 1.5).strengthen(2)
        BetaMean(above=5.0, below=3.0, low=0.0, high=1.0)
        """
        return BetaMean(self.above * times, self.below * times, self.low, self.high)

    def quantiles(self, shares: Floats) -> Floats:
        """Return quantiles: the mean lies below each with this probability.

        Args:
            shares: Probabilities, in (0, 1).
        """
        from scipy.special import betaincinv  # noqa: PLC0415 scipy loads slowly

        if min(self.above, self.below) <= 0 or self.above + self.below >= _MOST_CERTAIN / 2:
            return np.full(np.shape(shares), self.mean)
        quantiles: Floats = self.low + (self.high - self.low) * betaincinv(self.above, self.below, shares)
        return quantiles

    def draws(self, normal: Floats) -> Floats:
        """Return the quantiles that correspond to standard normal numbers, interpolated on a fine grid."""
        from scipy.special import ndtr  # noqa: PLC0415 scipy loads slowly

        return np.interp(normal, _GRID, self.quantiles(ndtr(_GRID)))
