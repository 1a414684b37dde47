"""Find rows of two runs that only one of them has scored, and what their scores could change."""

from dataclasses import dataclass

import numpy as np

from metric_core.statistics.bounded_means import estimate_interval
from metric_core.statistics.paired_tests import mcnemar_mid_p
from metric_core.statistics.pairs import Pairs, RowCounts, ScoreColumns
from metric_core.statistics.resampling import LEVEL, SEED, Floats, Interval, Units


@dataclass(frozen=True, slots=True)
class MissingScores:
    """Rows of both runs that only one run has scored.

    Args:
        p: P-value of "both runs lack scores equally often" (McNemar's test with mid-p).
        worst_case: Least and greatest mean difference, second run minus first, over the rows scored in at least one
            run, with any possible missing scores; None if the metric has no bounds.
        limits: Lower end of the 95 % interval of the least, and upper end of that of the greatest mean difference: the
            true difference lies between them whatever the missing scores are. None without bounds or with too few rows
            for an interval.
    """

    p: float
    worst_case: Interval | None
    limits: Interval | None = None

    @property
    def is_one_sided(self) -> bool:
        """Whether one run lacks more scores than the other by more than chance."""
        return self.p <= 1 - LEVEL

    def can_explain(self, difference: float = 0.0) -> bool:
        """Return whether one run lacks more scores by more than chance, and they could make up for a difference.

        They could if the difference lies within the limits: what the worst possible scores leave may still be chance.

        >>> MissingScores(0.01, Interval(0.01, 0.2), Interval(-0.05, 0.3)).can_explain()
        True
        >>> MissingScores(0.01, Interval(0.01, 0.2)).can_explain(), MissingScores(0.3, None).can_explain()
        (False, False)
        """
        within = self.limits or self.worst_case
        return self.is_one_sided and (within is None or within.low <= difference <= within.high)


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
    if pairs.bounds is None:
        return MissingScores(p, None)
    rows, ends = [], []
    for row in sorted(columns.a.keys() & columns.b.keys()):
        before, after = columns.a[row], columns.b[row]
        scored = before if after.value is None else after
        if (before.value is None) == (after.value is None) or scored.value is None or scored.label != pairs.scale:
            continue
        sign = -1 if after.value is None else 1
        rows.append(row)
        ends.append(sorted(sign * (scored.value - end) for end in (pairs.bounds.low, pairs.bounds.high)))
    possible = np.array(ends, dtype=np.float64).reshape(-1, 2)
    least, greatest = (np.concatenate([pairs.differences, possible[:, end]]) for end in (0, 1))
    groups = columns.groups_of([*pairs.rows, *rows])

    def interval(differences: Floats) -> Interval | None:
        units = Units.from_values(differences, groups)
        return estimate_interval(units, pairs.difference_bounds, seed, f"{columns.metric} with missing scores")

    low, high = interval(least), interval(greatest)
    return MissingScores(
        p,
        Interval(float(least.mean()), float(greatest.mean())),
        None if low is None or high is None else Interval(low.low, high.high),
    )
