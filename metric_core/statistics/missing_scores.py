"""Find rows of two runs that only one of them has scored, and what their scores could change.

Scores that are missing by chance change nothing. They are not if one run lacks more of them than the other, or if both
lack those of different rows: the good ones here, the bad ones there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metric_core.statistics.bounded_means import estimate_interval
from metric_core.statistics.paired_tests import mcnemar_mid_p
from metric_core.statistics.pairs import Pairs, RowCounts, ScoreColumns
from metric_core.statistics.resampling import LEVEL, SEED, Floats, Interval, Units


@dataclass(frozen=True, slots=True)
class MissingScores:
    """Rows of both runs that only one run has scored.

    Args:
        p: P-value of "both runs lack scores equally often" (McNemar's test with mid-p).
        p_which: P-value of "the missing scores move neither run's mean": rows that a run lacks score in the other run
            as the paired ones do, or those of both runs differ from these in the same way (rank-sum test).
        worst_case: Least and greatest mean difference, second run minus first, over the rows scored in at least one
            run, with any possible missing scores; None if the metric has no bounds.
        limits: Lower end of the 95 % interval of the least, and upper end of that of the greatest mean difference: the
            true difference lies between them whatever the missing scores are. None without bounds or with too few rows
            for an interval.
    """

    p: float
    worst_case: Interval | None
    limits: Interval | None = None
    p_which: float = 1.0

    @property
    def is_selective(self) -> bool:
        """Whether the scores are missing by more than chance: more in one run, or those of different rows."""
        return _is_selective(self.p, self.p_which)

    def can_explain(self, difference: float = 0.0) -> bool:
        """Return whether scores are missing by more than chance, and they could make up for a difference.

        They could if the difference lies within the limits: what the worst possible scores leave may still be chance.

        >>> MissingScores(0.01, Interval(0.01, 0.2), Interval(-0.05, 0.3)).can_explain()
        True
        >>> MissingScores(0.01, Interval(0.01, 0.2)).can_explain(), MissingScores(0.3, None).can_explain()
        (False, False)
        """
        within = self.limits or self.worst_case
        return self.is_selective and (within is None or within.low <= difference <= within.high)


def find_missing_scores(
    columns: ScoreColumns, pairs: Pairs, counts: RowCounts, seed: int = SEED
) -> MissingScores | None:
    """Return what rows that only one run has scored could change; None if there are none.

    Args:
        pairs: Paired rows of the metric, or of one of its scales.
        counts: Counts of paired and unpaired rows, which all scales share.

    >>> from metric_core.records import Direction, Score
    >>> from metric_core.statistics.pairs import pair_scores
    >>> cells = {f"row {i}": Score.scored(1.0) for i in range(9)}
    >>> without = cells | {f"row {i}": Score.failed("no usable reply") for i in range(6)}
    >>> columns = ScoreColumns(metric="m", direction=Direction.HIGHER, a=cells, b=without, bounds=(0.0, 1.0))
    >>> paired = pair_scores(columns)
    >>> missing = find_missing_scores(columns, paired.pairs[0], paired.counts)
    >>> missing.p, round(missing.worst_case.low, 3), missing.worst_case.high, missing.can_explain()
    (0.015625, -0.667, 0.0, True)
    """
    if not counts.unscored_a and not counts.unscored_b:
        return None
    p = mcnemar_mid_p(counts.unscored_a, counts.unscored_b)
    lost: list[dict[str, float]] = [
        {
            row: cell.value
            for row, cell in sorted(scored.items())
            if cell.value is not None and cell.label == pairs.scale and row in other and other[row].value is None
        }
        for scored, other in ((columns.a, columns.b), (columns.b, columns.a))
    ]
    values = [np.array(list(each.values()), dtype=np.float64) for each in lost]
    names = [columns.groups_of([*pairs.rows, *each]) for each in lost]
    p_which = _p_which((pairs.a, pairs.b), values, names)
    if pairs.bounds is None:
        return MissingScores(p, None, p_which=p_which)
    ends = [
        sorted(sign * (value - end) for end in (pairs.bounds.low, pairs.bounds.high))
        for sign, values in zip((-1, 1), lost, strict=True)
        for value in values.values()
    ]
    possible = np.array(ends, dtype=np.float64).reshape(-1, 2)
    least, greatest = (np.concatenate([pairs.differences, possible[:, end]]) for end in (0, 1))
    rows = [*pairs.rows, *lost[0], *lost[1]]
    groups, weights = columns.groups_of(rows), columns.weights_of(rows)

    def interval(differences: Floats) -> Interval | None:
        units = Units.from_values(differences, groups, weights)
        return estimate_interval(units, pairs.difference_bounds, seed, f"{columns.metric} with missing scores")

    low, high = interval(least), interval(greatest)
    return MissingScores(
        p,
        Interval(float(least.mean()), float(greatest.mean())),
        None if low is None or high is None else Interval(low.low, high.high),
        p_which,
    )


def are_selective(before: Floats, after: Floats, groups: NDArray[np.int64] | None = None) -> bool:
    """Return whether two runs lack scores by more than chance: more in one, or those of different rows.

    Args:
        before: Score of each row of both runs in the first; NaN where it lacks one.
        after: Score of each row in the second run.
        groups: Number of the group of each row; None if rows are independent.

    >>> before = np.repeat([1.0, 0.0], [60, 40])
    >>> worst, best = (np.where(np.arange(100) // 10 == tenth, np.nan, before) for tenth in (9, 0))
    >>> are_selective(worst, best), are_selective(worst, worst), are_selective(worst, before)
    (True, False, True)
    """
    has_before, has_after = ~np.isnan(before), ~np.isnan(after)
    both, only_before, only_after = has_before & has_after, has_before & ~has_after, has_after & ~has_before
    if not (only_before.any() or only_after.any()):
        return False
    p = mcnemar_mid_p(int(only_after.sum()), int(only_before.sum()))
    lost = (before[only_before], after[only_after])
    sides = (only_before, only_after)
    names = [None if groups is None else np.concatenate([groups[both], groups[each]]) for each in sides]
    return _is_selective(p, _p_which((before[both], after[both]), lost, names))


def _is_selective(p: float, p_which: float) -> bool:
    return 2 * min(p, p_which) <= 1 - LEVEL


def _p_which(scored: Sequence[Floats], lost: Sequence[Floats], groups: Sequence[Any]) -> float:
    """Return the p-value of "the missing scores move neither run's mean".

    A run that lacks rows which score low in the other run has a mean that is too high. What both lack cancels out.

    Args:
        scored: Scores of the paired rows in the first run, and in the second.
        lost: Scores of the rows that the second run lacks, and of those that the first run lacks.
        groups: Groups of the paired rows and these, for each of both; None if rows are independent.
    """
    shift = variance = 0.0
    for sign, scores, values, names in zip((-1, 1), scored, lost, groups, strict=True):
        if not len(values):
            continue
        pooled = np.concatenate([scores, values])
        _, place, ties = np.unique(pooled, return_inverse=True, return_counts=True)
        ranks = (np.cumsum(ties) - (ties - 1) / 2)[place]
        is_lost = np.arange(len(pooled)) >= len(scores)
        high = (ranks - ranks.mean()) / len(ranks)
        pull = Units.from_values((is_lost - is_lost.mean()) * high, names)
        shift += sign * float(pull.sums.sum())
        by_rows = float(is_lost.var() * (high @ high)) * len(ranks) / max(len(ranks) - 1, 1)
        variance += by_rows if names is None else max(by_rows, float(pull.sums @ pull.sums))
    if variance <= 0:
        return 1.0
    from scipy.special import ndtr  # noqa: PLC0415 scipy loads slowly

    return float(2 * ndtr(-abs(shift) / np.sqrt(variance)))
