"""Recognize scores that are lower where references are older.

A reference that is no longer true calls a right answer wrong. Such rows score low for no fault of the system, and a
system that has learnt of a change even looks worse than the one before it. Scores alone do not show it, but the dates
of references do: the older they are, the lower are the scores, or the more they fell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from metric_core.statistics.paired_tests import holm
from metric_core.statistics.rank_sums import center, ranks, standardize_sum
from metric_core.statistics.resampling import Floats

LEAST_ROWS = 30
"""Number of rows below which the normal limits of the test do not hold."""
_ERROR = 0.01
"""Share of the runs without such scores in which some metric is named."""
_OLD = 0.25
"""Share of the rows whose references are called old, to say how far their scores differ."""


@dataclass(frozen=True, slots=True)
class DatedScores:
    """Scores of rows, or their changes, with the dates of the references.

    Args:
        values: The values; the higher, the better.
        dates: Dates as numbers: the lower, the older.
        groups: Group of each row; None if rows are independent.
        weights: Weight of each row; None if each counts once.
    """

    values: Floats
    dates: Floats
    groups: Sequence[str] | None = None
    weights: Floats | None = None

    @property
    def p(self) -> float:
        """P-value of "older references have no lower values", by ranks; 1 for too few rows."""
        if len(self.values) < LEAST_ROWS:
            return 1.0
        from scipy.special import ndtr  # noqa: PLC0415 scipy loads slowly

        together = center(ranks(self.values)) * center(ranks(self.dates))
        return float(ndtr(-standardize_sum(together, self.groups)))


@dataclass(frozen=True, slots=True)
class AgeEffect:
    """Lower values where references are older.

    Args:
        before: Date before which a quarter of the references are, as a number.
        rows: Number of rows with such a reference.
        old: Mean of their values.
        others: Mean of the values of the other rows.
    """

    before: float
    rows: int
    old: float
    others: float


def find_age_effects(scores: Mapping[str, DatedScores]) -> dict[str, AgeEffect]:
    """Return the metrics with lower values where references are older: in 99 of 100 runs without any, none.

    Args:
        scores: Metric -> its values.

    >>> generator = np.random.default_rng(1)
    >>> dates = np.arange(300.0)
    >>> good = (generator.random(300) < np.where(dates < 60, 0.4, 0.9)).astype(float)
    >>> found = find_age_effects({"m": DatedScores(good, dates), "n": DatedScores(generator.random(300), dates)})
    >>> {metric: (effect.before, effect.rows, effect.old < 0.7 < effect.others) for metric, effect in found.items()}
    {'m': (75.0, 75, True)}
    """
    adjusted = holm([each.p for each in scores.values()])
    found = {}
    for (metric, each), p in zip(scores.items(), adjusted, strict=True):
        before = float(np.quantile(each.dates, _OLD, method="higher")) if len(each.dates) else 0.0
        is_old = each.dates < before
        if p > _ERROR or not is_old.any():
            continue
        weights = np.ones(len(each.values)) if each.weights is None else each.weights
        old, others = (float(np.average(each.values[part], weights=weights[part])) for part in (is_old, ~is_old))
        if old < others:
            found[metric] = AgeEffect(before, int(is_old.sum()), old, others)
    return found
