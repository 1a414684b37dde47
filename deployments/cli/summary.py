"""The summary of a run for terminals: the table of metrics, and why cells have no value."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from metric_core.records import Direction

LOWER_IS_BETTER = " ↓"
"""Marks a metric of which less is better."""


def summary_table(summary: Mapping[str, Any]) -> Table:
    """Metric, mean, interval, and the counts that the mean rests on.

    Args:
        summary: content of summary.json.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("metric", overflow="fold")
    for heading in ("mean", "95 % interval", "scored", "undefined", "failed"):
        table.add_column(heading, justify="right", no_wrap=True)
    for metric in summary["metrics"]:
        for row in _rows(metric):
            table.add_row(*row)
    return table


def reason_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Why cells have no value: one line a reason, with the metrics and counts."""
    by_reason: dict[str, list[str]] = {}
    for metric in summary["metrics"]:
        for reason, count in metric["reasons"].items():
            by_reason.setdefault(reason, []).append(f"{metric['metric']} ({count})")
    for reason, metrics in by_reason.items():
        yield f"{reason}: {', '.join(metrics)}"


def _rows(metric: Mapping[str, Any]) -> list[tuple[str, ...]]:
    name = metric["metric"] + (LOWER_IS_BETTER if metric["direction"] == Direction.LOWER else "")
    counts = tuple(str(metric[status] or "-") for status in ("scored", "undefined", "failed"))
    if metric["scales"]:
        parts = [(f"{name} on {scale}", numbers) for scale, numbers in metric["scales"].items()]
        return [(label, *_numbers(numbers), str(numbers["count"]), *counts[1:]) for label, numbers in parts]
    if metric["categories"]:
        shares = [(label, count / metric["scored"]) for label, count in metric["categories"].items()]
        return [(name, "", ", ".join(f"{label} {share:.0%}" for label, share in shares), *counts)]
    return [(name, *_numbers(metric["distribution"]), *counts)]


def _numbers(distribution: Mapping[str, Any] | None) -> tuple[str, str]:
    if distribution is None:
        return "-", "-"
    interval = distribution["interval"]
    shown = f"{interval['low']:.3f} to {interval['high']:.3f}" if interval else "-"
    return f"{distribution['mean']:.3f}", shown
