"""The summary of a run as a table for terminals."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from metric_core.records import Direction


def summary_table(manifest: Mapping[str, Any], summary: Mapping[str, Any]) -> Table:
    """Metric, mean, interval, and the counts that the mean rests on; then the reasons of cells without a value.

    Args:
        manifest: content of run.json.
        summary: content of summary.json.
    """
    table = Table(
        title=f"{summary['rows']} rows of {manifest['source']}",
        title_justify="left",
        box=None,
        pad_edge=False,
        header_style="bold",
    )
    table.add_column("metric", no_wrap=True)
    for heading in ("mean", "95 % interval", "scored", "undefined", "failed"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("why not scored", overflow="fold")
    for metric in summary["metrics"]:
        for row in _rows(metric):
            table.add_row(*row)
    return table


def _rows(metric: Mapping[str, Any]) -> list[tuple[str, ...]]:
    lower = " (lower is better)" if metric["direction"] == Direction.LOWER else ""
    counts = tuple(str(metric[status]) if metric[status] else "-" for status in ("scored", "undefined", "failed"))
    reasons = "; ".join(f"{reason} ({count})" for reason, count in metric["reasons"].items())
    name = f"{metric['metric']}{lower}"
    if metric["scales"]:
        parts = [(f"{name} on {scale}", d) for scale, d in metric["scales"].items()]
        return [(label, *_numbers(d), str(d["count"]), *counts[1:], reasons) for label, d in parts]
    if metric["categories"]:
        shares = ", ".join(f"{label} {count / metric['scored']:.0%}" for label, count in metric["categories"].items())
        return [(name, shares, "", *counts, reasons)]
    return [(name, *_numbers(metric["distribution"]), *counts, reasons)]


def _numbers(distribution: Mapping[str, Any] | None) -> tuple[str, str]:
    if distribution is None:
        return "-", "-"
    interval = distribution["interval"]
    shown = f"{interval['low']:.3f} to {interval['high']:.3f}" if interval else "-"
    return f"{distribution['mean']:.3f}", shown
