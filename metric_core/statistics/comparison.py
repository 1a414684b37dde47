"""Compare two runs per metric, over the rows scored in both: size and significance of differences.

A metric is better or worse only if its test is significant after Holm's correction over all metrics and its interval
excludes 0. Otherwise the difference is unclear, which does not mean that there is none.

Rows without a score in one of the runs can hide a difference or make one, for example if a run fails on its worst rows.
If the runs lack scores of different numbers of rows, or of rows that score differently, by more than chance, and the
missing scores could turn the difference around, the outcome is undecided.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from metric_core.records import Direction
from metric_core.statistics.bounded_means import Bounds, estimate_interval
from metric_core.statistics.earlier_runs import Adjusted, EarlierRuns, adjust_differences
from metric_core.statistics.missing_scores import MissingScores, find_missing_scores
from metric_core.statistics.paired_tests import PairedTest, holm, paired_test
from metric_core.statistics.pairs import Paired, Pairs, RowCounts, ScoreColumns, pair_scores
from metric_core.statistics.resampling import LEVEL, SEED, Interval
from metric_core.statistics.sample_size import Moments, detectable_difference
from metric_core.statistics.serial_order import is_serial

MOST_CHANGED = 5


class ChangeOutcome(StrEnum):
    """Outcome of the comparison of a metric."""

    BETTER = "better"
    WORSE = "worse"
    DIFFERENT = "different"
    UNCLEAR = "no clear difference"
    UNDECIDED = "undecided: scores are missing"
    NOT_COMPARED = "not compared"


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row whose value changed.

    Args:
        a: Value in the first run.
        b: Value in the second run.
    """

    row: str
    a: float
    b: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Difference of the values of paired rows, second run minus first.

    Args:
        mean_a: Mean in the first run.
        mean_b: Mean in the second run.
        mean: Difference of the means.
        interval: Interval of the difference at confidence level LEVEL; None for too few rows or groups.
        test: Test of "there is no difference"; None without an interval.
        p_adjusted: P-value of the test after Holm's correction over all compared metrics.
        improved: Number of rows that improved; if the metric has no direction, rows that increased.
        worsened: Number of rows that worsened; if the metric has no direction, rows that decreased.
        unchanged: Number of rows that did not change.
        groups: Number of groups of rows; None if rows are not grouped.
        independent_groups: Number of equal groups that would say as much; None like `groups`.
        detectable: True difference that 80 of 100 comparisons of as many rows and metrics would find; None without an
            interval, or if there is none so large.
        moments: Moments of the differences, or of their means in groups, from which `detectable` follows.
        bounds: Bounds of the differences; None if there are none.
        is_serial: True if rows that follow each other in the file change alike, so that the interval may be too narrow;
            not known of groups.
        earlier: Addition of earlier runs of the same rows to the interval and the test; None without any.
        missing: Rows that only one run has scored; None if there are none.
        most_changed: Rows that changed most, in descending order of change.
    """

    mean_a: float
    mean_b: float
    mean: float
    interval: Interval | None
    test: PairedTest | None
    p_adjusted: float | None
    improved: int
    worsened: int
    unchanged: int
    groups: int | None
    independent_groups: int | None
    detectable: float | None = None
    moments: Moments
    bounds: Bounds | None
    is_serial: bool = False
    earlier: EarlierRuns | None = None
    missing: MissingScores | None = None
    most_changed: tuple[RowChange, ...] = ()


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """Comparison of a metric in two runs.

    Args:
        metric: Key of the metric.
        scale: Scale of the rows, for metrics whose rows have different scales; each scale is compared separately.
        difference: Difference of the values; None without values in both runs.
        categories: Category -> number of rows in the first and in the second run, for categorical metrics.
        relabelled: Number of rows whose category changed.
    """

    metric: str
    scale: str | None
    direction: Direction
    verdict: ChangeOutcome
    rows: RowCounts
    difference: Difference | None
    categories: dict[str, tuple[int, int]]
    relabelled: int


@dataclass(frozen=True, slots=True)
class PairedMetric:
    """A metric whose rows are paired, once for all that reads them.

    Args:
        adjusted: Differences of the rows of each scale, less what earlier runs predict.
    """

    columns: ScoreColumns
    paired: Paired
    adjusted: tuple[Adjusted, ...]

    @classmethod
    def from_columns(cls, columns: ScoreColumns) -> "PairedMetric":
        """Pair the rows of a metric."""
        paired = pair_scores(columns)
        return cls(columns, paired, tuple(map(adjust_differences, paired.pairs)))

    def on_scale(self, scale: str | None) -> tuple[Pairs, Adjusted]:
        """Return the pairs of a scale, and their differences less what earlier runs predict."""
        parts = zip(self.paired.pairs, self.adjusted, strict=True)
        return next((pairs, adjusted) for pairs, adjusted in parts if pairs.scale == scale)


def compare_metrics(
    columns: Iterable[ScoreColumns], seed: int = SEED, most_changed: int = MOST_CHANGED
) -> list[MetricComparison]:
    """Compare every metric of two runs.

    Args:
        most_changed: Maximum number of most changed rows to list per metric.

    >>> from metric_core.records import Score
    >>> a = {f"row {i}": Score.scored(i % 2) for i in range(20)}
    >>> b = {row: Score.scored(1) for row in a}
    >>> columns = ScoreColumns(metric="faithfulness", direction=Direction.HIGHER, a=a, b=b, bounds=(0, 1))
    >>> [comparison] = compare_metrics([columns])
    >>> difference = comparison.difference
    >>> comparison.verdict.value, difference.mean, difference.improved, difference.test.p
    ('better', 0.5, 10, 0.0009765625)
    """
    return compare_paired([PairedMetric.from_columns(column) for column in columns], seed, most_changed)


def compare_paired(
    metrics: Iterable[PairedMetric], seed: int = SEED, most_changed: int = MOST_CHANGED
) -> list[MetricComparison]:
    """Compare every metric of two runs, whose rows are paired; see `compare_metrics`."""
    return decide_outcomes([part for metric in metrics for part in compare_metric(metric, seed, most_changed)])


def decide_outcomes(comparisons: Sequence[MetricComparison]) -> list[MetricComparison]:
    """Return the comparisons with their outcomes, after Holm's correction over all of them.

    Args:
        comparisons: Comparisons without outcomes.
    """
    adjusted = _adjust_ps([part.difference for part in comparisons])
    tests = sum(p is not None for p in adjusted)
    return [
        part if p is None else _decide_outcome(part, p, tests) for part, p in zip(comparisons, adjusted, strict=True)
    ]


def decide_again(comparisons: Sequence[MetricComparison], number: int, difference: Difference) -> ChangeOutcome:
    """Return the outcome of a metric with another difference, beside the other metrics as they are.

    Args:
        number: Place of the metric among the comparisons.
    """
    differences = [part.difference for part in comparisons]
    differences[number] = difference
    p_adjusted = _adjust_ps(differences)[number]
    if p_adjusted is None:
        return ChangeOutcome.NOT_COMPARED
    return find_outcome(difference, comparisons[number].direction, p_adjusted)


def _adjust_ps(differences: Sequence[Difference | None]) -> list[float | None]:
    """Return the p-value of each difference after Holm's correction over all of them; None for one without a test."""
    ps = [None if each is None or each.test is None else each.test.p for each in differences]
    adjusted = iter(holm([p for p in ps if p is not None]))
    return [None if p is None else next(adjusted) for p in ps]


def compare_metric(metric: PairedMetric, seed: int = SEED, most_changed: int = 0) -> list[MetricComparison]:
    """Return the comparisons of a metric, one per scale, without outcomes.

    Args:
        most_changed: Maximum number of most changed rows to list.
    """
    columns, paired = metric.columns, metric.paired
    blank = MetricComparison(
        metric=columns.metric,
        scale=None,
        direction=columns.direction,
        verdict=ChangeOutcome.NOT_COMPARED,
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
            difference=replace(
                compare_pairs(columns, pairs, adjusted, seed, most_changed),
                is_serial=pairs.groups is None and is_serial(pairs.in_order(columns.b, pairs.differences)),
                missing=find_missing_scores(columns, pairs, paired.counts, seed),
            ),
        )
        for pairs, adjusted in zip(paired.pairs, metric.adjusted, strict=True)
    ]


def _categories(paired: Paired) -> dict[str, tuple[int, int]]:
    before, after = (Counter(labels[side] for labels in paired.labels) for side in (0, 1))
    return {label: (before[label], after[label]) for label in sorted(before | after)}


def compare_pairs(
    columns: ScoreColumns, pairs: Pairs, adjusted: Adjusted, seed: int = SEED, most_changed: int = 0
) -> Difference:
    """Return the difference of paired values, without what depends on the order of the rows, or on other rows.

    Args:
        pairs: Paired rows of the metric, or of one of its scales, or some of these.
        adjusted: Their differences, less what earlier runs predict.
        most_changed: Maximum number of most changed rows to list.
    """
    differences = pairs.differences
    units = pairs.units(adjusted.values)
    worsening = pairs.worsening(columns.direction)
    label = columns.metric if pairs.scale is None else f"{columns.metric} {pairs.scale}"
    bounds = pairs.difference_bounds
    interval = estimate_interval(units, bounds, seed, label)
    test = None if interval is None else paired_test(pairs, seed, adjusted.values)
    moments = Moments.of_differences(units, adjusted.values, bounds)
    return Difference(
        mean_a=pairs.units(pairs.a).mean,
        mean_b=pairs.units(pairs.b).mean,
        mean=pairs.units(differences).mean,
        interval=None if interval is None else adjusted.widen(interval),
        test=None if test is None else replace(test, p=adjusted.moderate(test.p)),
        p_adjusted=None,
        improved=int((worsening < 0).sum()),
        worsened=int((worsening > 0).sum()),
        unchanged=int((worsening == 0).sum()),
        groups=None if pairs.groups is None else len(units),
        independent_groups=None if pairs.groups is None and pairs.weights is None else units.independent,
        moments=replace(moments, variance=moments.variance + adjusted.noise**2 * len(units)),
        bounds=bounds,
        earlier=adjusted.earlier,
        most_changed=_largest_changes(pairs, most_changed),
    )


def _largest_changes(pairs: Pairs, count: int) -> tuple[RowChange, ...]:
    size = np.abs(pairs.differences)
    order = np.argsort(-size, kind="stable")[:count]  # rows are sorted by id, so ties are too
    return tuple(RowChange(pairs.rows[i], float(pairs.a[i]), float(pairs.b[i])) for i in order if size[i] > 0)


def _decide_outcome(comparison: MetricComparison, p_adjusted: float, tests: int) -> MetricComparison:
    difference = comparison.difference
    if difference is None or difference.interval is None:
        return comparison
    units = comparison.rows.paired if difference.independent_groups is None else difference.independent_groups
    detectable = detectable_difference(difference.moments, units, difference.bounds, tests, LEVEL)
    adjusted = replace(difference, p_adjusted=p_adjusted, detectable=detectable)
    return replace(comparison, verdict=find_outcome(difference, comparison.direction, p_adjusted), difference=adjusted)


def find_outcome(difference: Difference, direction: Direction, p_adjusted: float) -> ChangeOutcome:
    """Return the outcome of a difference.

    Args:
        p_adjusted: P-value of the test after Holm's correction over all compared metrics.
    """
    if difference.interval is None:
        return ChangeOutcome.NOT_COMPARED
    low, high = difference.interval.low, difference.interval.high
    if p_adjusted > 1 - LEVEL or low <= 0 <= high:
        return ChangeOutcome.UNCLEAR
    if difference.missing is not None and difference.missing.can_explain():
        return ChangeOutcome.UNDECIDED
    if direction is Direction.NEITHER:
        return ChangeOutcome.DIFFERENT
    return ChangeOutcome.BETTER if (low > 0) == (direction is Direction.HIGHER) else ChangeOutcome.WORSE
