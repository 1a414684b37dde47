"""Compare a run with an earlier run of the same data: rows that differ, and judge questions asked."""

from collections import Counter
from typing import Any

from metric_core.stages import Stage
from tasks.rows.computed_tables import RunTables
from tasks.runs.finished_run import FinishedRun
from tasks.runtime.usage import StageUsage
from tasks.tables.row_changes import RowChanges, find_row_changes

_MAX_ROWS = 1000
"""Maximum number of changed rows to list; all are counted."""


def compare_with_baseline(earlier: FinishedRun, tables: RunTables) -> dict[str, Any]:
    """Return the baseline's entry in run.json.

    Args:
        earlier: Baseline run.
        tables: Tables of this run.
    """
    changes = find_row_changes(earlier.samples(), tables.shards(Stage.SAMPLES))
    return {
        "folder": str(earlier.folder),
        "run_id": earlier.run_id,
        "means": earlier.means(),
        **rows_entry(changes),
        **questions_entry(tables.total),
    }


def rows_entry(changes: RowChanges) -> dict[str, Any]:
    """Return the counts of rows and of changed columns, and the first changed rows.

    >>> rows_entry(RowChanges(("d",), (), {"a": ("response",)}, 2))["rows"]
    {'added': 1, 'removed': 0, 'changed': 1, 'unchanged': 2}
    """
    return {
        "rows": {
            "added": len(changes.added),
            "removed": len(changes.removed),
            "changed": len(changes.changed),
            "unchanged": changes.unchanged,
        },
        "changed_columns": dict(Counter(column for columns in changes.changed.values() for column in columns)),
        "rows_changed": [
            {"row_id": row_id, "columns": list(columns)}
            for row_id, columns in list(changes.changed.items())[:_MAX_ROWS]
        ],
    }


def questions_entry(usage: StageUsage) -> dict[str, int]:
    """Return the counts of judge questions: all, asked, and answered from the cache.

    >>> questions_entry(StageUsage(questions=10, stored=7, requests=4))
    {'questions': 10, 'asked': 3, 'stored': 7, 'requests': 4}
    """
    return {
        "questions": usage.questions,
        "asked": usage.questions - usage.stored,
        "stored": usage.stored,
        "requests": usage.requests,
    }
