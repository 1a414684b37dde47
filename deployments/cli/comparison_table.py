"""A comparison for terminals: what differs first, then the scores, then the gate."""

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from metric_core.records import Direction
from metric_core.statistics.comparison import MetricComparison, Verdict
from metric_core.statistics.gate import GateResult, Outcome
from tasks.render.comparison_words import (
    category_sentences,
    check_numbers,
    level_sentence,
    lost_sentences,
    numbers,
    row_sentences,
    title,
)
from tasks.render.summary_view import fixed
from tasks.run_comparison import RunComparison

_STYLES = {Verdict.BETTER: "green", Verdict.WORSE: "red", Verdict.DIFFERENT: "blue"}
_OUTCOME_STYLES = {Outcome.PASSED: "green", Outcome.FAILED: "red", Outcome.INCONCLUSIVE: "yellow"}


def print_comparison(console: Console, comparison: RunComparison) -> None:
    """Prints a comparison."""
    if comparison.not_alike:
        console.print(
            "NOT LIKE FOR LIKE: the scores differ for other reasons than the system under test", style="bold red"
        )
        for reason in comparison.not_alike:
            console.print(Text(f"  {reason}", style="red"), soft_wrap=True)
    for name, side in (("A", comparison.a), ("B", comparison.b)):
        if side is not None:
            console.print(Text(f"{name}  {side.folder}: {side.rows} rows of {side.source}"), soft_wrap=True)
    for sentence in (*row_sentences(comparison), *_other_settings(comparison)):
        console.print(Text(sentence), soft_wrap=True)
    if comparison.metrics:
        _print_metrics(console, comparison)
    if comparison.gate is not None:
        _print_gate(console, comparison.gate)


def _other_settings(comparison: RunComparison) -> Iterator[str]:
    for item in comparison.differences.settings if comparison.differences else ():
        if not item.is_serious:
            yield f"{item.name}: {item.a} → {item.b}"


def _print_metrics(console: Console, comparison: RunComparison) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("metric", overflow="fold")
    for heading in ("A", "B", "B - A", "95 % interval", "p", "effect", "rows"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for metric in comparison.metrics:
        verdict = Text(metric.verdict, style=_STYLES.get(metric.verdict, "dim"))
        table.add_row(Text(title(metric)), *numbers(metric), verdict)
    console.print()
    console.print(table)
    console.print("p after Holm's correction over all metrics; effect: mean difference over its standard deviation")
    if any(metric.direction is Direction.LOWER for metric in comparison.metrics):
        console.print("↓ lower is better")
    changed = [_changed(metric) for metric in comparison.metrics if metric.verdict in _STYLES]
    for sentence in (*lost_sentences(comparison), *category_sentences(comparison), *changed):
        console.print(Text(sentence), soft_wrap=True)


def _changed(metric: MetricComparison) -> str:
    rows = metric.difference.most_changed if metric.difference else ()
    return f"{metric.metric} changed most in " + ", ".join(
        f"{row.row} ({fixed(row.a)} → {fixed(row.b)})" for row in rows
    )


def _print_gate(console: Console, gate: GateResult) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("gate", "rule"):
        table.add_column(heading, overflow="fold")
    for heading in ("observed", "interval", "rows"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for check in gate.checks:
        outcome = Text(f"{check.outcome}: {check.reason}", style=_OUTCOME_STYLES[check.outcome])
        table.add_row(Text(check.metric), Text(check.rule), *check_numbers(check), str(check.rows), outcome)
    console.print()
    console.print(table)
    console.print(level_sentence(gate))
    console.print(Text(f"gate {gate.outcome}", style=f"bold {_OUTCOME_STYLES[gate.outcome]}"))
