"""Lines about a run for terminals: cells without a value, what was reused, and what was asked of the judge."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from metric_core.reasons import why_left_out
from tasks.record.run_summary import RunSummary
from tasks.runtime.usage import StageUsage

_MOST_REASONS = 5


def reason_lines(summary: RunSummary) -> Iterator[str]:
    """Yield one line per reason for cells without a value, with the metrics and counts."""
    return _by_reason(
        (reason, f"{metric.metric} ({count})") for metric in summary.metrics for reason, count in metric.reasons.items()
    )


def left_out_lines(left_out: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield one line per reason for metrics that are not computed by default.

    Args:
        left_out: Metric -> the columns that the data lacks for it; none if the judge cannot rate.

    >>> list(left_out_lines({"hit_rate": ["qrels"], "nv_accuracy": [], "ndcg": ["qrels"]}))
    ['no qrels: hit_rate, ndcg', 'needs a language-model judge: nv_accuracy']
    """
    return _by_reason((why_left_out(lacking), metric) for metric, lacking in left_out.items())


def _by_reason(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for reason, what in pairs:
        by_reason.setdefault(reason, []).append(what)
    yield from (f"{reason}: {', '.join(found)}" for reason, found in by_reason.items())


def unscored_line(summary: RunSummary) -> str | None:
    """Return the number of cells without a score; None if there are none."""
    undefined = sum(metric.undefined for metric in summary.metrics)
    failed = sum(metric.failed for metric in summary.metrics)
    count = undefined + failed
    if not count:
        return None
    of_them = f", {failed:,} of them failed" if failed else ""
    return f"{count:,} {'cell has' if count == 1 else 'cells have'} no score{of_them}: see the report, or --verbose"


def usage_lines(usage: StageUsage) -> Iterator[str]:
    """Yield the number of questions, if no table shows it.

    >>> list(usage_lines(StageUsage(questions=1200, stored=300)))
    ['1,200 questions to the judge, 300 of them cached']
    """
    if usage.questions and not usage.requests:
        cached = f", {usage.stored:,} of them cached" if usage.stored else ""
        yield f"{usage.questions:,} questions to the judge{cached}"


def failure_lines(usage: StageUsage) -> Iterator[str]:
    """Yield the reasons for answers of the judge that failed.

    >>> list(failure_lines(StageUsage(failed={"cut off": 2})))
    ['failed answers, cut off: 2']
    """
    failed = sorted(usage.failed.items(), key=lambda entry: entry[1], reverse=True)
    yield from (f"failed answers, {reason}: {count:,}" for reason, count in failed[:_MOST_REASONS])
    if rest := failed[_MOST_REASONS:]:
        yield f"failed answers, for {len(rest)} other reasons: {sum(count for _, count in rest):,}"
