"""Describe the changes of the diagnoses for the page of a comparison, and choose the rows to show for them."""

from collections.abc import Collection
from typing import Any

from metric_core.diagnosis.classes import BY_NAME, CLASSES, UNDIAGNOSED
from tasks.comparison.diagnosis_changes import DiagnosisChange, describe_changes
from tasks.comparison.run_comparison import RunComparison

MOST_ROWS_SHOWN = 40
"""Maximum number of rows on the page because of their diagnosis alone."""

_CAUSES = {"index": "the index", "generator": "the generator", "judge": "the judge", "test": "the test itself"}
_KINDS = {True: "worse", False: "better", None: "other"}


def diagnosis_changes_view(comparison: RunComparison, on_page: Collection[str]) -> dict[str, Any] | None:
    """Return the changes of the diagnoses for the page; None if a run has no diagnoses.

    Args:
        on_page: Names of the rows that the page shows.
    """
    found = comparison.diagnosis
    if found is None:
        return None
    names = [name for name in (*(each.name for each in CLASSES), UNDIAGNOSED) if found.a.get(name) or found.b.get(name)]
    return {
        "sentence": describe_changes(found),
        "rows": found.rows,
        "p": "<0.001" if found.p_value < 0.001 else f"{found.p_value:.3f}",
        "counts": [
            {"name": name, "a": found.a.get(name, 0), "b": found.b.get(name, 0), "meaning": _meaning(name)}
            for name in names
        ],
        "changes": [_change_view(change, on_page) for change in found.changes],
    }


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


def _change_view(change: DiagnosisChange, on_page: Collection[str]) -> dict[str, Any]:
    return {
        "before": change.before,
        "after": change.after,
        "cause": _CAUSES[change.cause],
        "count": change.count,
        "kind": _KINDS[change.is_loss],
        "rows": [{"name": name, "is_shown": name in on_page} for name in change.rows],
        "more": change.count - len(change.rows),
    }


def _meaning(name: str) -> str:
    return BY_NAME[name].meaning if name in BY_NAME else "The run has not enough verdicts to say what happened."
