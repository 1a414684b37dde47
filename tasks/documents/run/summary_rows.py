"""Format the summary and the cost of a run as tables of short texts, for terminals, pages and Prefect.

The rows for Prefect contain numbers, names of metrics and stages, and labels, but no text of the data or of a server.
"""

from collections.abc import Iterator
from typing import TypeAlias

from metric_core.records import Direction
from metric_core.stages import Stage
from metric_core.statistics.summary import Distribution, MetricSummary, describe_groups
from tasks.documents.blocks import Table, Text, make_table, own
from tasks.record.run_record import RunRecord
from tasks.record.run_summary import RunSummary
from tasks.runtime.usage import StageUsage
from tasks.runtime.wording import format_percent

Row: TypeAlias = tuple[str, ...]

SUMMARY_HEADINGS: Row = ("metric", "mean", "95 % interval", "scored", "undefined", "failed")
USAGE_HEADINGS: Row = (
    *("stage", "questions", "cached", "requests"),
    *("prompt tokens", "cached tokens", "output tokens", "seconds", "failed"),
)
TOTAL = "total"
LOWER_IS_BETTER = "↓"
"""Mark of a metric whose lower values are better."""

PROBABILITIES = (
    "verdicts count as the judge's probabilities: a score such as faithfulness is the mean probability that a claim is "
    "supported, which is the share of claims that are only if the judge is calibrated"
)
"""Meaning of scores from probabilities."""

_COUNTS = ("questions", "stored", "requests", "prompt_tokens", "cached_tokens", "output_tokens")
_STAGE_ORDER = list(Stage)
_NONE = "-"


def summary_rows(summary: RunSummary) -> list[Row]:
    """Return mean, interval and counts of each metric; a metric with several scales has one row per scale."""
    return [row for metric in summary.metrics for row in _metric_rows(metric)]


def summary_table(summary: RunSummary) -> Table:
    """Return the table of the metrics; failed cells, and means of groups, have a column if there are any."""
    shown = len(SUMMARY_HEADINGS) - (not any(metric.failed for metric in summary.metrics))
    headings, rows = SUMMARY_HEADINGS[:shown], [row[:shown] for row in summary_rows(summary)]
    parts = [part for metric in summary.metrics for part in (metric.scales.values() or [metric.distribution])]
    for heading, means in (
        ("each row once", [part and part.mean_of_rows for part in parts]),
        ("each group once", [part and part.mean_of_groups for part in parts]),
    ):
        if any(mean is not None for mean in means):
            headings = (*headings[:2], heading, *headings[2:])
            texts = [_NONE if mean is None else f"{mean:.3f}" for mean in means]
            rows = [(*row[:2], text, *row[2:]) for row, text in zip(rows, texts, strict=True)]
    return make_table(headings, rows)


def verdict_line(record: RunRecord) -> str | None:
    """Return what the scores of a run mean if verdicts count as probabilities; None for verdicts of 0 or 1."""
    is_probability = record.config.verdict == "probability"
    return PROBABILITIES if is_probability and Stage.VERDICTS in record.stages else None


def note_lines(summary: RunSummary) -> list[str]:
    """Return a sentence per metric whose rows are all alike, and per metric with grouped rows."""
    return [f"{name}: {note}" for metric in summary.metrics for name, note in _metric_notes(metric)]


def distribution_notes(distribution: Distribution) -> list[str]:
    """Return sentences on the mean: what is known if all rows are alike, and what it is if each group counts once.

    >>> groups = {"groups": 20, "independent_groups": 12, "mean_of_groups": 0.4}
    >>> distribution_notes(Distribution(100, 0.5, None, 0.5, 0.1, 0.0, 1.0, **groups))
    ['100 rows of 20 groups (about 12 independent groups); if each group counts once, the mean is 0.400']
    """
    notes = [distribution.note] if distribution.note else []
    if distribution.groups is not None:
        words = (
            f"{distribution.count:,} rows of {describe_groups(distribution.groups, distribution.independent_groups)}"
        )
        if distribution.mean_of_groups is not None:
            words += f"; if each group counts once, the mean is {distribution.mean_of_groups:.3f}"
        notes.append(words)
    if distribution.mean_of_rows is not None:
        worth = (
            "" if distribution.groups is not None else f", worth about {distribution.independent_groups:,} equal ones"
        )
        notes.append(f"rows have weights{worth}; if each row counts once, the mean is {distribution.mean_of_rows:.3f}")
    return notes


def usage_rows(record: RunRecord) -> list[Row]:
    """Return the cost of each stage that asked something, and the total; empty if nothing was asked."""
    asking = {stage: entry for stage, entry in record.stages.items() if entry.questions}
    rows = [_usage_row(stage, entry) for stage, entry in asking.items()]
    seconds = sum(entry.seconds for entry in asking.values())
    return [*rows, _usage_row(TOTAL, record.usage.model_copy(update={"seconds": seconds}))] if rows else []


def usage_table(record: RunRecord) -> Table | None:
    """Return the table of the cost of each stage; None if no judge server was asked."""
    return make_table(USAGE_HEADINGS, usage_rows(record)) if record.usage.requests else None


def stage_table(record: RunRecord) -> Table:
    """Return the results and the cost of every stage, for the report."""
    found = sorted(record.stages.items(), key=lambda item: _STAGE_ORDER.index(item[0]))
    counts = [
        (entry.questions, entry.stored, entry.prompt_tokens, entry.output_tokens, sum(entry.failed.values()))
        for _, entry in found
    ]
    rows: list[tuple[Text, ...]] = [
        (
            own(stage),
            f"{entry.rows:,}",
            f"{entry.seconds:,.1f}",
            *(f"{count:,}" for count in of_stage),
            ", ".join(f"{count:,} {reason}" for reason, count in entry.failed.items()),
        )
        for (stage, entry), of_stage in zip(found, counts, strict=True)
    ]
    seconds = sum(entry.seconds for _, entry in found)
    numbers = ("rows", "seconds", "questions", "cached", "prompt tokens", "output tokens", "failed")
    sums = (f"{sum(of_stage[i] for of_stage in counts):,}" for i in range(len(numbers) - 2))
    rows.append((own(TOTAL), "", f"{seconds:,.1f}", *sums, ""))
    return make_table(("stage", *numbers, "reasons"), rows, numbers)


def _metric_rows(metric: MetricSummary) -> list[Row]:
    name = metric.metric + (f" {LOWER_IS_BETTER}" if metric.direction is Direction.LOWER else "")
    counts = tuple(str(count or _NONE) for count in (metric.scored, metric.undefined, metric.failed))
    if metric.scales:
        parts = [(f"{name} on {scale}", numbers) for scale, numbers in metric.scales.items()]
        return [(label, *_numbers(numbers), str(numbers.count), *counts[1:]) for label, numbers in parts]
    if metric.categories:
        shares = [(label, count / metric.scored) for label, count in metric.categories.items()]
        return [(name, "", ", ".join(f"{label} {format_percent(share)}" for label, share in shares), *counts)]
    return [(name, *_numbers(metric.distribution), *counts)]


def _metric_notes(metric: MetricSummary) -> Iterator[tuple[str, str]]:
    parts = {f"{metric.metric} on {scale}": numbers for scale, numbers in metric.scales.items()}
    if metric.distribution is not None:
        parts[metric.metric] = metric.distribution
    for name, numbers in parts.items():
        for note in distribution_notes(numbers):
            yield name, note


def _numbers(distribution: Distribution | None) -> tuple[str, str]:
    if distribution is None:
        return _NONE, _NONE
    interval = distribution.interval
    return f"{distribution.mean:.3f}", f"{interval.low:.3f} to {interval.high:.3f}" if interval else _NONE


def _usage_row(name: str, usage: StageUsage) -> Row:
    found = [getattr(usage, count) for count in _COUNTS]
    failed = sum(usage.failed.values())
    counts = (f"{count:,}" if count else _NONE for count in found)
    return (name, *counts, f"{usage.seconds:.1f}", f"{failed:,}" if failed else _NONE)
