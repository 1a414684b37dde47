"""Two runs compared metric by metric, over the rows that both have scored: how far apart, and whether by chance.

A metric is called better or worse only where its test says so after Holm's correction over all metrics and its interval
leaves out 0; anything else is no clear difference, which does not say that there is none.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from metric_core.records import Direction
from metric_core.statistics.paired_tests import PairedTest, holm, paired_test
from metric_core.statistics.pairs import Paired, Pairs, RowCounts, ScoreColumns, pair_scores
from metric_core.statistics.resampling import LEVEL, SEED, Floats, Interval, Units, bootstrap_mean

MOST_CHANGED = 5


class Verdict(StrEnum):
    """What a comparison says about a metric."""

    BETTER = "better"
    WORSE = "worse"
    DIFFERENT = "different"
    UNCLEAR = "no clear difference"
    NOT_COMPARED = "not compared"


@dataclass(frozen=True, slots=True)
class Effect:
    """How large a difference is beside the spread of the differences.

    Args:
        standardized: mean of the differences over their standard deviation (Cohen's d for pairs); None without spread.
        rank_biserial: from -1, all rows that differ have become less, to 1, all have become more, weighted by the
            ranks of the differences; None where no row differs.
        odds_ratio: rows that went from 0 to 1 over rows that went from 1 to 0; None unless all values are 0 or 1 and
            there are rows of both.
    """

    standardized: float | None
    rank_biserial: float | None
    odds_ratio: float | None


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row whose value changed.

    Args:
        row: its id.
        a: its value in the first run.
        b: its value in the second run.
    """

    row: str
    a: float
    b: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The values of the paired rows, second run minus first.

    Args:
        mean_a: mean in the first run.
        mean_b: mean in the second run.
        mean: their difference.
        interval: of the difference at the confidence level LEVEL; None for fewer than two rows, or groups.
        test: of "there is no difference"; None for fewer than two rows, or groups.
        p_adjusted: its p-value after Holm's correction over all metrics compared.
        effect: how large it is.
        improved: rows that became better; for a metric of no direction, more.
        worsened: rows that became worse; for a metric of no direction, less.
        unchanged: rows that stayed as they were.
        groups: how many groups the rows belong to, where rows belong together.
        most_changed: the rows that changed most, the most changed first.
    """

    mean_a: float
    mean_b: float
    mean: float
    interval: Interval | None
    test: PairedTest | None
    p_adjusted: float | None
    effect: Effect
    improved: int
    worsened: int
    unchanged: int
    groups: int | None
    most_changed: tuple[RowChange, ...]


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """A metric in two runs.

    Args:
        metric: its key.
        scale: the scale that rows bring, for metrics whose rows bring scales of their own: one comparison each.
        direction: whether more is better.
        verdict: what can be said.
        rows: what became of the rows.
        difference: of the values; None without values in both runs.
        categories: category -> rows in the first and in the second run, for metrics that answer with one.
        relabelled: rows whose category changed.
    """

    metric: str
    scale: str | None
    direction: Direction
    verdict: Verdict
    rows: RowCounts
    difference: Difference | None
    categories: dict[str, tuple[int, int]]
    relabelled: int


def compare(
    columns: Iterable[ScoreColumns], seed: int = SEED, most_changed: int = MOST_CHANGED
) -> list[MetricComparison]:
    """Compares every metric of two runs.

    Args:
        columns: the cells of each metric.
        seed: where resampling and random permutations start.
        most_changed: how many of the rows that changed most are named, a metric.

    >>> from metric_core.records import Score
    >>> a = {f"row {i}": Score.scored(i % 2) for i in range(20)}
    >>> b = {row: Score.scored(1) for row in a}
    >>> columns = ScoreColumns(metric="faithfulness", direction=Direction.HIGHER, a=a, b=b)
    >>> [found] = compare([columns])
    >>> found.verdict.value, found.difference.mean, found.difference.improved, found.difference.test.p
    ('better', 0.5, 10, 0.001953125)
    """
    found = [part for column in columns for part in _compare_metric(column, seed, most_changed)]
    tested = [part.difference.test.p for part in found if part.difference and part.difference.test]
    adjusted = iter(holm(tested))
    return [
        _decide_verdict(part, next(adjusted)) if part.difference and part.difference.test else part for part in found
    ]


def _compare_metric(columns: ScoreColumns, seed: int, most_changed: int) -> list[MetricComparison]:
    paired = pair_scores(columns)
    blank = MetricComparison(
        metric=columns.metric,
        scale=None,
        direction=columns.direction,
        verdict=Verdict.NOT_COMPARED,
        rows=paired.counts,
        difference=None,
        categories=_categories(paired),
        relabelled=sum(a != b for a, b in paired.labels),
    )
    if not paired.pairs:
        return [blank]
    return [
        replace(
            blank,
            scale=pairs.scale,
            rows=replace(paired.counts, paired=len(pairs.rows)),
            difference=_difference(columns, pairs, seed, most_changed),
        )
        for pairs in paired.pairs
    ]


def _categories(paired: Paired) -> dict[str, tuple[int, int]]:
    before, after = (Counter(labels[side] for labels in paired.labels) for side in (0, 1))
    return {label: (before[label], after[label]) for label in sorted(before | after)}


def _difference(columns: ScoreColumns, pairs: Pairs, seed: int, most_changed: int) -> Difference:
    differences = pairs.differences
    units = Units.of(differences, pairs.groups)
    is_enough = len(units) > 1
    worsening = pairs.worsening(columns.direction)
    label = columns.metric if pairs.scale is None else f"{columns.metric} {pairs.scale}"
    return Difference(
        mean_a=float(pairs.a.mean()),
        mean_b=float(pairs.b.mean()),
        mean=float(differences.mean()),
        interval=bootstrap_mean(units, seed, label).interval(LEVEL) if is_enough else None,
        test=paired_test(pairs, seed) if is_enough else None,
        p_adjusted=None,
        effect=_effect(pairs),
        improved=int((worsening < 0).sum()),
        worsened=int((worsening > 0).sum()),
        unchanged=int((worsening == 0).sum()),
        groups=None if pairs.groups is None else len(units),
        most_changed=_largest_changes(pairs, most_changed),
    )


def _effect(pairs: Pairs) -> Effect:
    differences = pairs.differences
    deviation = float(differences.std(ddof=1)) if np.ptp(differences) > 0 else None
    odds_ratio = None
    if pairs.are_binary:
        gained, lost = int((differences > 0).sum()), int((differences < 0).sum())
        odds_ratio = gained / lost if gained and lost else None
    return Effect(
        standardized=float(differences.mean()) / deviation if deviation else None,
        rank_biserial=_rank_biserial(differences),
        odds_ratio=odds_ratio,
    )


def _rank_biserial(differences: Floats) -> float | None:
    changed = differences[differences != 0]
    if not len(changed):
        return None
    from scipy.stats import rankdata  # noqa: PLC0415 importing scipy.stats costs most of a second

    ranks = rankdata(np.abs(changed))
    return float((ranks * np.sign(changed)).sum() / ranks.sum())


def _largest_changes(pairs: Pairs, count: int) -> tuple[RowChange, ...]:
    size = np.abs(pairs.differences)
    order = np.argsort(-size, kind="stable")[:count]  # rows are in the order of their ids, so ties are too
    return tuple(RowChange(pairs.rows[i], float(pairs.a[i]), float(pairs.b[i])) for i in order if size[i] > 0)


def _decide_verdict(comparison: MetricComparison, p_adjusted: float) -> MetricComparison:
    difference = comparison.difference
    if difference is None or difference.interval is None:
        return comparison
    judged = replace(difference, p_adjusted=p_adjusted)
    low, high = difference.interval.low, difference.interval.high
    if p_adjusted > 1 - LEVEL or low <= 0 <= high:
        verdict = Verdict.UNCLEAR
    elif comparison.direction is Direction.NEITHER:
        verdict = Verdict.DIFFERENT
    else:
        verdict = Verdict.BETTER if (low > 0) == (comparison.direction is Direction.HIGHER) else Verdict.WORSE
    return replace(comparison, verdict=verdict, difference=judged)
