"""Keep a promise over all looks at a sample of labels that grows.

Who calibrates after every fifty labels, and stops when the result pleases, errs more often than once. So the limits of
each look may be wrong with a part of the promised probability only: `FIRST` at the first look, and that part divided by
the number of looks so far at each later one. Looks at mostly the same labels mostly err together, so that these parts
need not sum to 1; how often any look errs is measured in `benchmarks/coverage_labels.py`.
"""

from dataclasses import dataclass

from metric_core.calibration.estimates import Estimate
from metric_core.statistics.resampling import Interval

FIRST = 0.6
"""Part of the probability of an error that the first look may use."""


def tail_of_look(tail: float, look: int) -> float:
    """Return the probability with which the limit of a look may be wrong, so that those of all looks hold.

    Args:
        tail: Probability with which any of the limits may be wrong, in (0, 1).
        look: Number of the look, from 1.

    >>> round(tail_of_look(0.05, 1), 6), round(tail_of_look(0.05, 4), 6)
    (0.03, 0.0075)
    """
    return FIRST * tail / look


@dataclass(frozen=True, slots=True)
class LookedAt(Estimate):
    """An estimate whose limits hold over all looks at its labels.

    Args:
        once: The estimate from the labels of the last look, with limits for a single one.
        look: Number of the last look, from 1.
    """

    once: Estimate
    look: int

    @classmethod
    def from_estimate(cls, once: Estimate, look: int) -> "LookedAt":
        """Return an estimate with limits that hold over so many looks."""
        return cls(once.value, once, look)

    def limits(self, tail: float) -> Interval:
        """Return the limits of the last look."""
        return self.once.limits(tail_of_look(tail, self.look))

    def strict_limits(self, tail: float) -> Interval:
        """Return the limits of the last look for decisions."""
        return self.once.strict_limits(tail_of_look(tail, self.look))
