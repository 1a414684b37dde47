"""The diagnosis of runs on the page of a history, and in its tables."""

from dataclasses import replace

from tasks.findings.diagnosis.diagnosis_counts import DiagnosisCounts
from tasks.history.recorded_run import RunDetails
from tasks.reports.history.history_page import history_page
from tasks.reports.history.history_text import table_of_findings
from tests.tasks.history.recorded import nights
from tests.tasks.reports.test_history_page import data_of, no_report


def test_the_script_gets_the_causes_and_key_points_of_each_run() -> None:
    data = data_of(history_page("nightly", nights(12), [], no_report))
    lost = [0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2]
    assert data["diagnosis"]["passage missing"] == lost
    expected = {"key points": [900] * 12, "lost by the index": lost, "lost by the generator": [3] * 12}
    assert data["key_points"] == expected


def test_key_points_have_a_table_with_a_column_per_run() -> None:
    before, after = nights(2)
    diagnosis = after.details.find(DiagnosisCounts)
    assert diagnosis is not None
    points = diagnosis.extend(key_points={**(diagnosis.key_points or {}), "index": 1200})
    after = replace(after, details=after.details.with_findings(points))
    table = table_of_findings([before, replace(after, details=RunDetails()), after])
    assert table is not None
    cells = [[str(cell) for cell in row] for row in table.rows]
    assert [row[0] for row in cells] == ["key points", "lost by the index", "lost by the generator"]
    assert cells[1][1:] == ["0", "-", "1,200"]
    assert table_of_findings([replace(after, details=RunDetails())]) is None
