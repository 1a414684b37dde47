"""Recognize a difference between two runs that the lengths of their answers may explain.

Many judges err more often on long answers. Such a judge gives the run with longer answers other scores, row after row,
and no test of the scores alone can tell. So two questions are asked of the lengths: whether they differ between the
runs, and whether scores go with them within each run. If both are so, and longer answers score as the difference says,
the judge or the system may be the cause: labels of people can tell.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metric_core.statistics.rank_sums import center, ranks, standardize_sum
from metric_core.statistics.resampling import Floats

_LEAST_ROWS = 30
"""Number of rows below which the normal limits of the tests do not hold."""
_SUSPECT = 2.576
"""Normal quantile from which on each of both tests is significant: p = 0.01."""


@dataclass(frozen=True, slots=True)
class LengthEffect:
    """Answers of different lengths with different scores.

    Args:
        before: Median length of the answers of the first run.
        after: Median length of those of the second.
        explained: Difference of the scores that goes with that of the lengths, by a straight line over both runs.
    """

    before: float
    after: float
    explained: float


def find_length_effect(
    scores: tuple[Floats, Floats],
    lengths: tuple[Floats, Floats],
    groups: Sequence[str] | None = None,
    weights: Floats | None = None,
) -> LengthEffect | None:
    """Return the part of lengths in the difference of two runs; None if the lengths cannot explain it.

    The lengths are compared by the signs of the rows' differences, and with scores by the ranks within each run. Rows,
    or groups of them, are the units of both tests.

    Args:
        scores: Scores of the same rows in both runs.
        lengths: Lengths of their answers.
        groups: Group of each row; None if rows are independent.
        weights: Weight of each row, for the part that is explained; None if each counts once.

    >>> generator = np.random.default_rng(1)
    >>> short = generator.normal(100, 20, 300)
    >>> long = short * 1.5
    >>> scores = tuple(1 - length / 400 + generator.normal(0, 0.05, 300) for length in (short, long))
    >>> found = find_length_effect(scores, (short, long))
    >>> bool(found.before < found.after), round(found.explained, 1)
    (True, -0.1)
    >>> find_length_effect(scores, (short, short)) is None
    True
    """
    if len(scores[0]) < _LEAST_ROWS:
        return None
    longer = np.sign(lengths[1] - lengths[0])
    ranked = [(center(ranks(s)), center(ranks(n))) for s, n in zip(scores, lengths, strict=True)]
    together: Floats = ranked[0][0] * ranked[0][1] + ranked[1][0] * ranked[1][1]
    difference = float(np.average(scores[1] - scores[0], weights=weights))
    if abs(standardize_sum(longer, groups)) < _SUSPECT or abs(standardize_sum(together, groups)) < _SUSPECT:
        return None
    pairs = [(center(s), center(n)) for s, n in zip(scores, lengths, strict=True)]
    slope = sum(float(s @ n) for s, n in pairs) / sum(float(n @ n) for _, n in pairs)
    explained = slope * float(np.average(lengths[1] - lengths[0], weights=weights))
    if explained * difference <= 0:
        return None
    return LengthEffect(float(np.median(lengths[0])), float(np.median(lengths[1])), explained)
