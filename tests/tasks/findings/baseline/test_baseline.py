"""The baseline of a run on a terminal."""

from typing import Any

from tasks.findings.baseline.baseline_finding import describe_baseline
from tasks.record.other_runs import BaselineRecord


def test_large_counts_are_readable() -> None:
    baseline = {
        "folder": "runs/monday",
        "rows": {"added": 1, "removed": 0, "changed": 3, "unchanged": 2000},
        "changed_columns": {"retrieved_contexts": 3},
        "asked": 41,
        "questions": 2310,
    }
    said = "3 rows changed (retrieved_contexts 3), 1 added; 41 of 2,310 questions asked"
    named: dict[str, Any] = {"run_id": "monday", **baseline}
    assert describe_baseline(BaselineRecord.model_validate(named)) == f"compared with runs/monday: {said}"
    same = {**named, "rows": {"added": 0, "removed": 0, "changed": 0, "unchanged": 5}}
    assert "no row changed; " in describe_baseline(BaselineRecord.model_validate(same))
