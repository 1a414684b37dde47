"""Decide whether so many cells of a run failed that the run as a whole counts as failed."""

from collections.abc import Iterable

from metric_core.statistics.summary import MetricSummary

ALL = 1.0
"""The share that means all cells of a metric."""


def find_failures(summaries: Iterable[MetricSummary], share: float = ALL) -> tuple[str, ...]:
    """Return a sentence for each metric with too many failed cells, or one if no metric has any value.

    Cells with nothing to measure (undefined) are not counted, unless the whole run has only such cells. The
    sentences hold names and numbers only.

    Args:
        share: Share of failed cells, greater than 0 and at most 1, from which on a metric is named.

    >>> from metric_core.records import Direction, Score
    >>> from metric_core.statistics.summary import summarize
    >>> cells = [Score.scored(1), Score.failed("cut off"), Score.undefined("empty")]
    >>> summary = summarize("faithfulness", Direction.HIGHER, cells)
    >>> find_failures([summary]), find_failures([summary], 0.5)
    ((), ('faithfulness: 1 of 2 cells failed',))
    >>> find_failures([summarize("faithfulness", Direction.HIGHER, [Score.undefined("empty")])])
    ('no cell has a value: all 1 are undefined',)
    """
    metrics = list(summaries)
    named = tuple(
        f"{metric.metric}: {metric.failed:,} of {metric.failed + metric.scored:,} cells failed"
        for metric in metrics
        if metric.failed and metric.failed >= share * (metric.failed + metric.scored)
    )
    if named or any(metric.scored for metric in metrics):
        return named
    return (f"no cell has a value: all {sum(metric.undefined for metric in metrics):,} are undefined",)
