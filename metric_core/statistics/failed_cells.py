"""Decide whether so many cells of a run failed that the run as a whole counts as failed."""

from collections import Counter
from collections.abc import Iterable, Sequence

from metric_core.statistics.summary import MetricSummary

_LONGEST_REASON = 200

ALL = 1.0
"""The share that means all cells of a metric."""


def find_failures(summaries: Iterable[MetricSummary], share: float = ALL) -> tuple[str, ...]:
    """Return a sentence for each metric with too many failed cells, or one if no metric has any value.

    Cells with nothing to measure (undefined) are not counted, unless the whole run has only such cells. The
    sentences hold names, numbers and the most frequent reason.

    Args:
        share: Share of failed cells, greater than 0 and at most 1, from which on a metric is named.

    >>> from metric_core.records import Direction, Score
    >>> from metric_core.statistics.summary import summarize
    >>> cells = [Score.scored(1), Score.failed("cut off"), Score.undefined("empty")]
    >>> summary = summarize("faithfulness", Direction.HIGHER, cells)
    >>> find_failures([summary]), find_failures([summary], 0.5)
    ((), ('faithfulness: 1 of 2 cells failed, most often: cut off',))
    >>> find_failures([summarize("faithfulness", Direction.HIGHER, [Score.undefined("empty")])])
    ('no cell has a value: all 1 are undefined, most often: empty',)
    """
    metrics = list(summaries)
    named = tuple(
        f"{metric.metric}: {metric.failed:,} of {metric.failed + metric.scored:,} cells failed{_name_reason([metric])}"
        for metric in metrics
        if metric.failed and metric.failed >= share * (metric.failed + metric.scored)
    )
    if named or any(metric.scored for metric in metrics):
        return named
    undefined = sum(metric.undefined for metric in metrics)
    return (f"no cell has a value: all {undefined:,} are undefined{_name_reason(metrics)}",)


def _name_reason(metrics: Sequence[MetricSummary]) -> str:
    """Return the most frequent reason why cells have no value, in words; empty without any."""
    reasons = Counter[str]()
    for metric in metrics:
        reasons.update({reason: count for reason, count in metric.reasons.items() if reason})
    if not reasons:
        return ""
    (reason, _), *_ = reasons.most_common(1)
    short = " ".join(reason.split())
    return f", most often: {short if len(short) <= _LONGEST_REASON else f'{short[:_LONGEST_REASON]}...'}"
