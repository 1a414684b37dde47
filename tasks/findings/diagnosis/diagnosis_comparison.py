"""Show which answers a run lost and regained since another one."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from metric_core.diagnosis.classes import CLASSES, UNDIAGNOSED
from tasks.comparison.run_comparison import RunComparison
from tasks.documents.blocks import Block, Section, Span, Table, Text, Tone, make_table, own
from tasks.documents.comparison.comparison_words import format_p
from tasks.documents.html import to_html
from tasks.findings.comparison import ComparedRows, FindingComparison
from tasks.findings.diagnosis.diagnosis_changes import (
    DiagnosisChange,
    DiagnosisChanges,
    compare_diagnoses,
    describe_changes,
)
from tasks.findings.parts import Templated

_ROWS_NAMED = 3
"""Rows named per change of a diagnosis."""

_KINDS = {True: "worse", False: "better", None: "other"}
_TONES = {True: Tone.BAD, False: Tone.GOOD}


def compare(rows: ComparedRows) -> DiagnosisChanges | None:
    """Return the changes of the diagnoses; None if either run has none."""
    return compare_diagnoses(rows.pair)


def headline(comparison: RunComparison) -> Iterator[str]:
    """Yield how many answers and key points were lost and regained."""
    if (found := comparison.find(DiagnosisChanges)) is not None:
        yield describe_changes(found)


def notes(comparison: RunComparison) -> Iterator[str]:
    """Yield the same, if anything was lost."""
    found = comparison.find(DiagnosisChanges)
    if found is not None and (found.lost or found.lost_points):
        yield describe_changes(found)


def moved_rows(comparison: RunComparison) -> Iterator[Block]:
    """Yield the rows whose diagnosis changed."""
    if rows := diagnosis_table(comparison):
        yield Section(own("Rows whose diagnosis changed"), (rows,))


def section(comparison: RunComparison, on_page: Collection[str]) -> Templated | None:
    """Return the section of the page; None if a run has no diagnoses.

    Args:
        on_page: Names of the rows that the page shows.
    """
    found, counts = comparison.find(DiagnosisChanges), class_counts(comparison)
    if found is None or counts is None:
        return None
    moved = diagnosis_table(comparison, on_page)
    content = {
        "p": format_p(found.p_value),
        "counts": to_html([counts]),
        "moved": None if moved is None else to_html([moved]),
    }
    return Templated("diagnosis/comparison.html.j2", content)


def lost_and_regained(comparison: RunComparison) -> Iterator[str]:
    """Yield the names of the rows whose answers were lost or regained, lost ones first."""
    found = comparison.find(DiagnosisChanges)
    for change in () if found is None else found.changes:
        if change.is_loss is not None:
            yield from change.rows


def changes_of_rows(comparison: RunComparison) -> Callable[[str], Mapping[str, Any]]:
    """Return a function that returns the change of the diagnosis of a row."""
    found = comparison.find(DiagnosisChanges)
    by_row = {
        name: {"a": change.before, "b": change.after, "kind": _KINDS[change.is_loss]}
        for change in (() if found is None else found.changes)
        for name in change.rows
    }
    return lambda name: {"diagnosis": by_row.get(name)}


def diagnosis_table(comparison: RunComparison, on_page: Collection[str] = ()) -> Table | None:
    """Return the changes of the diagnoses; None if there are none.

    Args:
        on_page: Names of the rows that the page shows, and that it links to.
    """
    found = comparison.find(DiagnosisChanges)
    changes = () if found is None else found.changes
    headings = ("A", "B", "because of", "rows", "such as")
    rows = [
        (
            own(change.before),
            own(change.after, Tone.PLAIN if change.is_loss is None else _TONES[change.is_loss]),
            own(str(change.cause)),
            f"{change.count:,}",
            _name_rows(change, on_page),
        )
        for change in changes
    ]
    return make_table(headings, rows, ("rows",)) if rows else None


def class_counts(comparison: RunComparison) -> Table | None:
    """Return the number of rows of each class in both runs; None if a run has no diagnoses."""
    found = comparison.find(DiagnosisChanges)
    if found is None:
        return None
    ordered = dict.fromkeys((*(each.name for each in CLASSES), *found.a, *found.b))
    names = sorted((name for name in ordered if found.a.get(name) or found.b.get(name)), key=UNDIAGNOSED.__eq__)
    rows = [(own(name), f"{found.a.get(name, 0):,}", f"{found.b.get(name, 0):,}") for name in names]
    return make_table(("class", "A", "B"), rows, ("A", "B"))


def _name_rows(change: DiagnosisChange, on_page: Collection[str]) -> Text:
    shown = change.rows if on_page else change.rows[:_ROWS_NAMED]
    names = [Span(name, link=f"row-{quote(name)}" if name in on_page else "") for name in shown]
    more = change.count - len(shown)
    separated = [part for name in names for part in (name, own(", "))][:-1]
    return (*separated, *([own(f", and {more:,} more")] if more else []))


COMPARISON = FindingComparison(
    compare=compare,
    headline=headline,
    last=moved_rows,
    section=section,
    rows=lost_and_regained,
    row_values=changes_of_rows,
    notes=notes,
)
