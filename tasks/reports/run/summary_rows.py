"""Format the summary and the cost of a run as tables of short texts, for terminals, pages and Prefect.

The rows for Prefect contain numbers, names of metrics and stages, and labels, but no text of the data or of a server.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from metric_core.records import Direction
from metric_core.stages import Stage
from metric_core.statistics.summary import describe_groups
from tasks.reports.documents.blocks import Table, Text, make_table, own
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
    "supported, not the share of claims that are"
)
"""Meaning of scores from probabilities."""

_COUNTS = ("questions", "stored", "requests", "prompt_tokens", "cached_tokens", "output_tokens")
_STAGE_ORDER = list(Stage)
_NONE = "-"


def summary_rows(summary: Mapping[str, Any]) -> list[Row]:
    """Return mean, interval and counts of each metric; a metric with several scales has one row per scale.

    Args:
        summary: Content of summary.json.
    """
    return [row for metric in summary["metrics"] for row in _metric_rows(metric)]


def summary_table(summary: Mapping[str, Any]) -> Table:
    """Return the table of the metrics; failed cells have a column if there are any.

    Args:
        summary: Content of summary.json.
    """
    shown = len(SUMMARY_HEADINGS) - (not any(metric["failed"] for metric in summary["metrics"]))
    return make_table(SUMMARY_HEADINGS[:shown], (row[:shown] for row in summary_rows(summary)))


def verdict_line(manifest: Mapping[str, Any]) -> str | None:
    """Return what the scores of a run mean if verdicts count as probabilities; None for verdicts of 0 or 1.

    Args:
        manifest: Content of run.json.

    >>> verdict_line({"config": {"verdict": "binary"}, "stages": {"verdicts": {}}}) is None
    True
    """
    is_probability = (manifest.get("config") or {}).get("verdict") == "probability"
    return PROBABILITIES if is_probability and Stage.VERDICTS in manifest["stages"] else None


def note_lines(summary: Mapping[str, Any]) -> list[str]:
    """Return a sentence per metric whose rows are all alike, and per metric with grouped rows.

    Args:
        summary: Content of summary.json.
    """
    return [f"{name}: {note}" for metric in summary["metrics"] for name, note in _metric_notes(metric)]


def distribution_notes(distribution: Mapping[str, Any]) -> list[str]:
    """Return sentences on the mean: what is known if all rows are alike, and what groups of rows do to it.

    Args:
        distribution: A distribution in summary.json.

    >>> distribution_notes({"count": 100, "groups": 20, "effective_groups": 12.4, "design_effect": 2.5})
    ['100 rows of 20 groups (effectively 12.4) say as much about the mean as 40 independent rows (design effect 2.5)']
    """
    notes = [distribution["note"]] if distribution.get("note") else []
    groups, effect = distribution.get("groups"), distribution.get("design_effect")
    if groups is not None:
        words = f"{distribution['count']:,} rows of {describe_groups(groups, distribution.get('effective_groups'))}"
        if effect and effect >= 1:
            independent = f"{distribution['count'] / effect:,.0f}"
            words += f" say as much about the mean as {independent} independent rows (design effect {effect:.1f})"
        notes.append(words)
    return notes


def usage_rows(manifest: Mapping[str, Any]) -> list[Row]:
    """Return the cost of each stage that asked something, and the total; empty if nothing was asked.

    Args:
        manifest: Content of run.json.
    """
    asking = {stage: entry for stage, entry in manifest["stages"].items() if entry["questions"]}
    rows = [_usage_row(stage, entry) for stage, entry in asking.items()]
    seconds = sum(entry["seconds"] for entry in asking.values())
    return [*rows, _usage_row(TOTAL, {**manifest["usage"], "seconds": seconds})] if rows else []


def usage_table(manifest: Mapping[str, Any]) -> Table | None:
    """Return the table of the cost of each stage; None if no judge server was asked.

    Args:
        manifest: Content of run.json.
    """
    return make_table(USAGE_HEADINGS, usage_rows(manifest)) if manifest["usage"]["requests"] else None


def stage_table(manifest: Mapping[str, Any]) -> Table:
    """Return the results and the cost of every stage, for the report.

    Args:
        manifest: Content of run.json.
    """
    names = ("questions", "stored", "prompt_tokens", "output_tokens")
    found = sorted(manifest["stages"].items(), key=lambda item: _STAGE_ORDER.index(item[0]))
    counts = [[*(entry.get(name, 0) for name in names), sum(entry["failed"].values())] for _, entry in found]
    rows: list[tuple[Text, ...]] = [
        (
            own(stage),
            f"{entry['rows']:,}",
            f"{entry['seconds']:,.1f}",
            *(f"{count:,}" for count in of_stage),
            ", ".join(f"{count:,} {reason}" for reason, count in entry["failed"].items()),
        )
        for (stage, entry), of_stage in zip(found, counts, strict=True)
    ]
    seconds = sum(entry["seconds"] for _, entry in found)
    sums = (f"{sum(of_stage[i] for of_stage in counts):,}" for i in range(len(names) + 1))
    numbers = ("rows", "seconds", "questions", "cached", "prompt tokens", "output tokens", "failed")
    rows.append((own(TOTAL), "", f"{seconds:,.1f}", *sums, ""))
    return make_table(("stage", *numbers, "reasons"), rows, numbers)


def _metric_rows(metric: Mapping[str, Any]) -> list[Row]:
    name = metric["metric"] + (f" {LOWER_IS_BETTER}" if metric["direction"] == Direction.LOWER else "")
    counts = tuple(str(metric[status] or _NONE) for status in ("scored", "undefined", "failed"))
    if metric["scales"]:
        parts = [(f"{name} on {scale}", numbers) for scale, numbers in metric["scales"].items()]
        return [(label, *_numbers(numbers), str(numbers["count"]), *counts[1:]) for label, numbers in parts]
    if metric["categories"]:
        shares = [(label, count / metric["scored"]) for label, count in metric["categories"].items()]
        return [(name, "", ", ".join(f"{label} {format_percent(share)}" for label, share in shares), *counts)]
    return [(name, *_numbers(metric["distribution"]), *counts)]


def _metric_notes(metric: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    parts = {f"{metric['metric']} on {scale}": numbers for scale, numbers in metric["scales"].items()}
    if metric["distribution"] is not None:
        parts[metric["metric"]] = metric["distribution"]
    for name, numbers in parts.items():
        for note in distribution_notes(numbers):
            yield name, note


def _numbers(distribution: Mapping[str, Any] | None) -> tuple[str, str]:
    if distribution is None:
        return _NONE, _NONE
    interval = distribution["interval"]
    shown = f"{interval['low']:.3f} to {interval['high']:.3f}" if interval else _NONE
    return f"{distribution['mean']:.3f}", shown


def _usage_row(name: str, usage: Mapping[str, Any]) -> Row:
    counts = (f"{usage[count]:,}" if usage[count] else _NONE for count in _COUNTS)
    failed = sum(usage["failed"].values())
    return (name, *counts, f"{usage['seconds']:.1f}", f"{failed:,}" if failed else _NONE)
