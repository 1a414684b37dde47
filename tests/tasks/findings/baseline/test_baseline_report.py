"""The baseline of a run in its report."""

import json
from pathlib import Path

from tasks.reports.run.report_page import write_report
from tests.tasks.findings.judge.judge_page import text_on_judge
from tests.tasks.reports import folders
from tests.tasks.reports.parsed_page import Page


def write_compared_run(folder: Path) -> Path:
    """Write a run that names its baseline."""
    folder = folders.write_large_run(folder, rows=2)
    manifest = json.loads((folder / "run.json").read_text())
    manifest["baseline"] = {
        "run_id": "accepted",
        "folder": "runs/accepted",
        "rows": {"added": 1, "removed": 0, "changed": 1, "unchanged": 0},
        "changed_columns": {"response": 1},
        "rows_changed": [{"row_id": "row-1", "columns": ["response"]}],
        "means": {"faithfulness": 0.5},
    }
    folders.write_json(folder / "run.json", manifest)
    return folder


def test_means_and_rows_that_have_changed_since_the_baseline_are_marked(tmp_path: Path) -> None:
    page = Page(write_report(write_compared_run(tmp_path / "run")).read_text(encoding="utf-8"))
    assert "higher is better; +0.250 since the baseline" in page.text
    assert {row["id"]: row["changed"] for row in page.data["rows"]} == {"row-1": ["response"], "row-0": []}


def test_the_baseline_is_named_with_its_rows(tmp_path: Path) -> None:
    said = text_on_judge(write_compared_run(tmp_path / "run"))
    assert "runs/accepted 1 row added, 0 rows removed, 1 row changed, 0 rows unchanged (response 1)" in said
