"""Print a comparison to a terminal: first the differences between the runs, then the scores, then the gate.

A terminal of 80 columns is too narrow for all numbers: there, the p-value and the effect are left out.
"""

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from deployments.cli._support.console import print_table
from deployments.cli._support.slices_table import print_compared_slices
from metric_core.gates.rules import Check, GateResult, Outcome
from metric_core.records import Direction
from metric_core.statistics.comparison import ChangeOutcome, MetricComparison, RowChange
from tasks.comparison.run_comparison import RunComparison
from tasks.reports.comparison.comparison_words import (
    category_sentences,
    cause_sentences,
    check_numbers,
    correction_sentences,
    detectable_sentences,
    diagnosis_rows,
    diagnosis_sentences,
    headline,
    is_worse,
    level_sentence,
    lost_sentences,
    numbers,
    row_sentences,
    rows_changed_most,
    title,
)
from tasks.reports.figures import format_fixed
from tasks.runtime.wording import shorten_path

WIDE = 116
"""Minimum width, in columns, for all numbers."""
MOST_PASSED_SLICES = 12
"""Number of passed checks of slices up to which a rule lists each."""

_HEADINGS = ("A", "B", "B - A", "95 % interval", "p", "effect", "rows")
_ONLY_WIDE = {"p", "effect"}
_SHORT = {ChangeOutcome.UNCLEAR: "unclear", ChangeOutcome.UNDECIDED: "undecided", ChangeOutcome.NOT_COMPARED: "-"}
_STYLES = {ChangeOutcome.BETTER: "green", ChangeOutcome.WORSE: "red", ChangeOutcome.DIFFERENT: "blue"}
_CHANGE_STYLES = {True: "red", False: "green", None: "blue"}
_OUTCOME_STYLES = {Outcome.PASSED: "green", Outcome.FAILED: "red", Outcome.INCONCLUSIVE: "yellow"}


def print_comparison(console: Console, comparison: RunComparison, top: int) -> None:
    """Print a comparison.

    Args:
        console: Console to print to.
        comparison: Comparison to print.
        top: Number of most changed rows to print.
    """
    _print_runs(console, comparison)
    if comparison.a is not None:
        console.print(headline(comparison.metrics), style="bold")
    for sentence in diagnosis_sentences(comparison):
        console.print(Text(sentence), style="bold", soft_wrap=True)
    if comparison.metrics:
        _print_metrics(console, comparison)
    for sentence in (*row_sentences(comparison), *_other_settings(comparison)):
        console.print(Text(sentence), soft_wrap=True)
    if comparison.metrics:
        print_compared_slices(console, comparison.slices, console.width >= WIDE)
        _print_rows(console, comparison, top)
    if comparison.diagnosis is not None:
        _print_diagnosis(console, comparison)
    if comparison.gate is not None:
        _print_gate(console, comparison.gate)


def _print_runs(console: Console, comparison: RunComparison) -> None:
    """Print which runs are compared, and whether they are alike."""
    if comparison.not_alike:
        console.print(
            "NOT LIKE FOR LIKE: the scores differ for reasons other than the system under test", style="bold red"
        )
        for reason in comparison.not_alike:
            console.print(Text(f"  {reason}", style="red"), soft_wrap=True)
    for name, side in (("A", comparison.a), ("B" if comparison.a else "run", comparison.b)):
        if side is not None:
            console.print(
                Text(f"{name}  {shorten_path(side.folder)}: {side.rows:,} rows of {side.source}"), soft_wrap=True
            )


def _other_settings(comparison: RunComparison) -> Iterator[str]:
    for item in comparison.differences.settings if comparison.differences else ():
        if not item.is_serious:
            yield f"{item.name}: {item.a} → {item.b}"


def _print_metrics(console: Console, comparison: RunComparison) -> None:
    is_wide = console.width >= WIDE
    headings = [heading for heading in _HEADINGS if is_wide or heading not in _ONLY_WIDE]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("metric", overflow="fold", min_width=16)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("outcome", no_wrap=True)
    for metric in comparison.metrics:
        shown = [number for name, number in zip(_HEADINGS, numbers(metric), strict=True) if name in headings]
        words = metric.verdict if is_wide else _SHORT.get(metric.verdict, metric.verdict)
        table.add_row(Text(title(metric)), *shown, Text(words, style=_STYLES.get(metric.verdict, "dim")))
    print_table(console, table)
    if any(metric.direction is Direction.LOWER for metric in comparison.metrics):
        console.print("↓ lower is better", style="dim")
    if is_wide:
        words = "p after Holm's correction over all metrics; effect: mean difference over its standard deviation"
        console.print(words, style="dim")
    for sentence in (
        *cause_sentences(comparison),
        *correction_sentences(comparison),
        *lost_sentences(comparison),
        *detectable_sentences(comparison),
        *category_sentences(comparison),
    ):
        console.print(Text(sentence), soft_wrap=True)


def _print_rows(console: Console, comparison: RunComparison, top: int) -> None:
    rows = rows_changed_most(comparison.metrics)[:top]
    if not rows:
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("rows that changed most", overflow="fold", max_width=max(24, console.width // 3))
    table.add_column("A→B", overflow="fold")
    for row, changes in rows:
        table.add_row(Text(row), Text(", ").join(_change(*change) for change in changes))
    console.print()
    print_table(console, table)


def _print_diagnosis(console: Console, comparison: RunComparison) -> None:
    console.print()
    if rows := diagnosis_rows(comparison):
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading, is_count in (("diagnosis A", False), ("B", False), ("because of", False), ("rows", True)):
            table.add_column(heading, justify="right" if is_count else "left", no_wrap=True)
        table.add_column("such as", overflow="fold")
        for before, after, cause, count, names in rows:
            table.add_row(before, after, cause, count, Text(names))
        print_table(console, table)


def _change(metric: MetricComparison, change: RowChange) -> Text:
    words = f"{metric.metric} {format_fixed(change.a)}→{format_fixed(change.b)}"
    return Text(words, style=_CHANGE_STYLES[is_worse(metric, change.b - change.a)])


def _print_gate(console: Console, gate: GateResult) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("gate", overflow="fold", min_width=16)
    for heading in ("observed", "interval", "rows"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    by_rule: dict[str, list[Check]] = {}
    for check in gate.checks:
        by_rule.setdefault(check.rule, []).append(check)
    for rule, checks in by_rule.items():
        table.add_row(Text(rule, style="italic"))
        shown = [check for check in checks if check.slice is None or check.outcome is not Outcome.PASSED]
        passed = len(checks) - len(shown)
        for check in checks if passed <= MOST_PASSED_SLICES else shown:
            outcome = Text(check.outcome, style=_OUTCOME_STYLES[check.outcome])
            table.add_row(Text(f"  {check.subject}"), *check_numbers(check), f"{check.rows:,}", outcome)
        if passed > MOST_PASSED_SLICES:
            table.add_row(Text(f"  {passed:,} slices", style="dim"), "", "", "", Text("passed", style="green"))
    console.print()
    print_table(console, table)
    console.print(level_sentence(gate), style="dim")
    for sentence in gate.left_out:
        console.print(Text(sentence, style="dim"), soft_wrap=True)
    for check in gate.checks:
        if check.outcome is not Outcome.PASSED:
            words = f"{check.outcome}: {check.subject}, {check.rule}: {check.reason}"
            console.print(Text(words, style=_OUTCOME_STYLES[check.outcome]), soft_wrap=True)
    console.print(Text(f"gate {gate.outcome}", style=f"bold {_OUTCOME_STYLES[gate.outcome]}"))
