"""Print slices to a terminal: those that stand out, and the worst slice of each metric."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from deployments.cli._support.console import print_table
from metric_core.statistics.slice_comparison import SliceComparison
from metric_core.statistics.slices import SMALL_SLICE
from tasks.reports.comparison.comparison_words import numbers, title
from tasks.reports.comparison.slices_words import headline_of_slices, worst_slices_first
from tasks.reports.run.slices_view import SliceLine, describe_column, read_lines, worst_lines_first
from tasks.reports.run.summary_rows import LOWER_IS_BETTER
from tasks.runs.slice_summaries import SLICES

MOST_LINES = 20
"""Maximum number of slices to print that stand out."""
LONGEST_VALUE = 40
"""Maximum number of characters of a value."""


def print_slices(console: Console, summary: Mapping[str, Any]) -> None:
    """Print the slices of a run, if it has any.

    Args:
        console: Console to print to.
        summary: Content of summary.json.
    """
    for entry in summary.get(SLICES, ()):
        lines = _choose_lines(read_lines(summary, entry["column"]))
        console.print()
        console.print(Text(describe_column(entry)), style="bold", soft_wrap=True)
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column(f"worst by {entry['column']}", overflow="fold")
        table.add_column("metric", overflow="fold", min_width=16)
        for heading in ("mean", "95 % interval", "rows"):
            table.add_column(heading, justify="right", no_wrap=True)
        for line in lines:
            table.add_row(*_cells(line))
        print_table(console, table)
        worse = any(line.is_worse for line in lines)
        words = "! worse than the other rows by more than chance, over all slices and metrics"
        console.print(words if worse else f"none is {words[2:]}", style="dim")


def print_compared_slices(console: Console, slices: Sequence[SliceComparison], is_wide: bool) -> None:
    """Print the slices of a comparison, if it has any.

    Args:
        console: Console to print to.
        slices: Comparisons of the slices.
        is_wide: True if there is room for all numbers.
    """
    if not slices:
        return

    ordered = worst_slices_first(slices)
    shown = _first_of_each(ordered, lambda part: part.comparison.metric, lambda part: part.stands_out)
    console.print()
    console.print(Text(headline_of_slices(slices)), style="bold", soft_wrap=True)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("slice", "metric"):
        table.add_column(heading, overflow="fold", min_width=12)
    headings = ("A", "B", "B - A", "95 % interval", "p", "effect", "rows")
    wide = {"A", "B", "p", "effect"}
    for heading in headings:
        if is_wide or heading not in wide:
            table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("outcome", no_wrap=True)
    for part in shown:
        cells = [
            cell
            for heading, cell in zip(headings, numbers(part.comparison), strict=True)
            if is_wide or heading not in wide
        ]
        verdict = part.comparison.verdict if part.stands_out or is_wide else "unclear"
        table.add_row(Text(_shorten(str(part.slice))), Text(title(part.comparison)), *cells, Text(verdict))
    print_table(console, table)
    if len(shown) < len(slices):
        console.print(f"{len(slices) - len(shown):,} more in --html, --markdown and --json", style="dim")


def _choose_lines(lines: Sequence[SliceLine]) -> list[SliceLine]:
    """Return the lines that are worse than the other rows, and the worst of each metric."""
    by_metric: dict[str, list[SliceLine]] = {}
    for line in lines:
        if line.badness is not None:
            by_metric.setdefault(line.name, []).append(line)
    ordered = [worst_lines_first(found) for found in by_metric.values()]
    worse = [line for found in ordered for line in found if line.is_worse][:MOST_LINES]
    return [*worse, *(found[0] for found in ordered if found[0] not in worse)]


def _first_of_each(parts: Sequence[SliceComparison], key: Any, stands_out: Any) -> list[SliceComparison]:
    """Return the parts that stand out, and the first of each key."""
    chosen: list[SliceComparison] = [part for part in parts if stands_out(part)][:MOST_LINES]
    seen = {key(part) for part in chosen}
    for part in parts:
        if key(part) not in seen and part.comparison.difference is not None:
            seen.add(key(part))
            chosen.append(part)
    return chosen


def _cells(line: SliceLine) -> Iterator[Text]:
    distribution = line.distribution or {}
    interval = distribution.get("interval")
    arrow = f" {LOWER_IS_BETTER}" if line.direction == "lower" else ""
    style = "red" if line.is_worse else "dim" if line.is_small else ""
    cells = (
        f"{'! ' if line.is_worse else ''}{_shorten(line.slice.value)}",
        f"{line.name}{arrow}",
        f"{distribution['mean']:.3f}",
        f"{interval['low']:.3f} to {interval['high']:.3f}" if interval else "-",
        f"{line.rows:,}{' (small)' if line.rows < SMALL_SLICE else ''}",
    )
    return (Text(cell, style=style) for cell in cells)


def _shorten(value: str) -> str:
    r"""Return a value as one line that is not too long.

    >>> _shorten("a\nb" + "c" * 50)
    'a bccccccccccccccccccccccccccccccccccccc…'
    """
    plain = " ".join(value.split())
    return plain if len(plain) <= LONGEST_VALUE else f"{plain[:LONGEST_VALUE]}…"
