"""Define the units of a mean: single rows, or groups of rows that are drawn as a whole."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEVEL = 0.95
RESAMPLES = 4999
SEED = 20240229

_LEAST_TAIL = 1e-12
"""Lower limit of a tail that is taken for a few groups, one of them large."""
_ROUNDING = 1e-12
"""Largest difference of sums that counts as a rounding error."""


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
        sums: Sum of the values of each unit, of rows with weights their weighted sum.
        counts: Number of rows of each unit, or the sum of their weights.
    """

    sums: Floats
    counts: Floats

    @classmethod
    def from_values(cls, values: Floats, groups: Sequence[str] | None = None, weights: Floats | None = None) -> "Units":
        """Create units from values; every row is a unit, or every group if groups are given.

        Args:
            weights: Weight of each row, above 0; None if each counts once.

        >>> Units.from_values(np.array([1.0, 0.0, 0.5]), ["x", "y", "x"]).sums.tolist()
        [1.5, 0.0]
        """
        counts = np.ones(len(values)) if weights is None else weights
        weighted = values if weights is None else values * weights
        if groups is None:
            return cls(weighted, counts)
        _, unit = np.unique(np.asarray(groups, dtype=object).astype(str), return_inverse=True)
        sums, sizes = (np.bincount(unit, weights=each).astype(np.float64) for each in (weighted, counts))
        return cls(sums, sizes)

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
