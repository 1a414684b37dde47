"""The rows and values of a baseline that a run has."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from metric_core.records import Score
from metric_core.stages import Stage
from tasks.comparison.baseline_coverage import measure_coverage
from tasks.comparison.run_pair import Matching, RunPair
from tasks.runs.finished_run import FinishedRun
from tests.tasks.reports import folders

METRICS = {"faithfulness": {"direction": "higher", "bounds": [0.0, 1.0]}}


def _write(folder: Path, rows: Sequence[dict[str, Any]]) -> FinishedRun:
    samples = [{"row_number": i + 1, "row_id": f"{folder.name} {i}", **row} for i, row in enumerate(rows)]
    scores = {row["row_id"]: {"faithfulness": Score.scored(1.0)} for row in samples}
    return FinishedRun(folders.write_run(folder, scores, {Stage.SAMPLES: samples}, METRICS, {"status": "completed"}))


def _row(number: int, **cells: Any) -> dict[str, Any]:
    extras = cells.pop("extras", {"topic": "a", "note": ""})
    full = {"user_input": f"q{number}", "response": "r", "retrieved_contexts": ["c"], "reference": "x"}
    return {**full, "extras": None if extras is None else json.dumps(extras), **cells}


@pytest.mark.parametrize("size", [1, 5])
def test_rows_and_values_are_counted_by_the_name_of_the_row(tmp_path: Path, size: int) -> None:
    before = _write(tmp_path / "a", [_row(number) for number in range(6 * size)])
    cells: list[dict[str, Any]] = [
        {"response": None},
        {"response": "", "retrieved_contexts": []},
        {"extras": {"topic": None}},
        {"extras": None},
    ]
    changed = [_row(number, **cells[number % 4]) for number in range(4 * size)]
    after = _write(tmp_path / "b", [*changed, _row(100), _row(101)])
    kept = measure_coverage(RunPair.from_runs(before, after, Matching("user_input")))
    assert (kept.rows, kept.others) == ((4 * size, 6 * size), 2)
    rows = 4 * size
    assert kept.values == {
        "response": (2 * size, rows),
        "retrieved_contexts": (3 * size, rows),
        "topic": (2 * size, rows),
    }


def test_run_that_has_everything_lacks_nothing(tmp_path: Path) -> None:
    before = _write(tmp_path / "a", [_row(number, extras=None) for number in range(3)])
    after = _write(tmp_path / "b", [_row(number) for number in range(3)])
    kept = measure_coverage(RunPair.from_runs(before, after, Matching("user_input")))
    assert (kept.rows, kept.others, kept.values) == ((3, 3), 0, {})


def test_another_reference_is_no_lost_value(tmp_path: Path) -> None:
    """Two runs with other references are not like for like, which is told by itself."""
    before = _write(tmp_path / "a", [_row(number) for number in range(3)])
    after = _write(tmp_path / "b", [_row(number, reference=None) for number in range(3)])
    assert measure_coverage(RunPair.from_runs(before, after, Matching("user_input"))).values == {}
