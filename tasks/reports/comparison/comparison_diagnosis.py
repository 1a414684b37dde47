"""Describe the changes of the diagnoses for the page of a comparison, and choose the rows to show for them."""

from metric_core.diagnosis.classes import CLASSES, UNDIAGNOSED
from tasks.comparison.run_comparison import RunComparison
from tasks.reports.documents.blocks import Table, make_table, own

MOST_ROWS_SHOWN = 40
"""Maximum number of rows on the page because of their diagnosis alone."""

_KINDS = {True: "worse", False: "better", None: "other"}


def class_counts(comparison: RunComparison) -> Table | None:
    """Return the number of rows of each class in both runs; None if a run has no diagnoses."""
    found = comparison.diagnosis
    if found is None:
        return None
    names = [name for name in (*(each.name for each in CLASSES), UNDIAGNOSED) if found.a.get(name) or found.b.get(name)]
    rows = [(own(name), f"{found.a.get(name, 0):,}", f"{found.b.get(name, 0):,}") for name in names]
    return make_table(("class", "A", "B"), rows, ("A", "B"))


def rows_by_diagnosis(comparison: RunComparison) -> list[str]:
    """Return the names of the rows to show because their answers were lost or regained, lost ones first."""
    changes = comparison.diagnosis.changes if comparison.diagnosis is not None else ()
    return [name for change in changes if change.is_loss is not None for name in change.rows][:MOST_ROWS_SHOWN]


def diagnosis_of_rows(comparison: RunComparison) -> dict[str, dict[str, str]]:
    """Return the change of the diagnosis of each row whose diagnosis changed, by the name of the row."""
    changes = comparison.diagnosis.changes if comparison.diagnosis is not None else ()
    return {
        name: {"a": change.before, "b": change.after, "kind": _KINDS[change.is_loss]}
        for change in changes
        for name in change.rows
    }
