"""Compare the rows of a run with those of its baseline."""

from collections import Counter

from flows.findings.run_finding import ComputedRun, Found, RunFinding
from metric_core.stages import Stage
from tasks.record.other_runs import BaselineRecord, ChangedRow, RowCounts
from tasks.runs.finished_run import FinishedRun
from tasks.runs.row_changes import RowChanges, find_row_changes

_MAX_ROWS = 1000
"""Maximum number of changed rows to list; all are counted."""


def compare_with_baseline(run: ComputedRun) -> Found:
    """Return which rows and means a run with a baseline may change, and what it asked for them."""
    folder = run.run.plan.outputs.baseline
    if folder is None:
        return Found(None)
    earlier, tables = FinishedRun(folder), run.tables
    changes, usage = find_row_changes(earlier.samples(), tables.shards(Stage.SAMPLES)), tables.total
    entry = BaselineRecord(
        folder=str(earlier.folder),
        run_id=earlier.run_id,
        means=earlier.means(),
        rows=count_rows(changes),
        changed_columns=dict(Counter(column for columns in changes.changed.values() for column in columns)),
        rows_changed=tuple(
            ChangedRow(row_id=row_id, columns=columns) for row_id, columns in list(changes.changed.items())[:_MAX_ROWS]
        ),
        questions=usage.questions,
        asked=usage.questions - usage.stored,
        stored=usage.stored,
        requests=usage.requests,
    )
    return Found(entry)


def count_rows(changes: RowChanges) -> RowCounts:
    """Return the numbers of rows by what became of them.

    >>> count_rows(RowChanges(("d",), (), {"a": ("response",)}, 2))
    RowCounts(added=1, removed=0, changed=1, unchanged=2)
    """
    return RowCounts(
        added=len(changes.added),
        removed=len(changes.removed),
        changed=len(changes.changed),
        unchanged=changes.unchanged,
    )


FINDING = RunFinding(compute=compare_with_baseline)
