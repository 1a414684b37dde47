"""Bias-corrected means of a run, from its scores and the judge's error in its manifest."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metric_core.records import Direction, Score
from metric_core.statistics.pairs import ScoreColumns
from tasks.calibration.bias_correction import correct_differences, correct_means, known_judge_errors
from tasks.runs.run_folder import SCORES

ERROR = {"bad": 0.25, "gain": 0.5, "variance_bad": 1e-4, "covariance": -1e-4, "variance_gain": 2e-4, "units": 80}


def manifest(**facts: Any) -> dict[str, Any]:
    return {"calibration": {"metrics": {"a": {"label": "good", "span": None, "error": ERROR, **facts}}}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run folder with the scores of two metrics."""
    values = [*(("a", value) for value in (0.25, 0.75, 0.75, None)), *(("b", 0.1) for _ in range(4))]
    rows = [{"row_id": str(i), "metric": metric, "value": value} for i, (metric, value) in enumerate(values)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / SCORES)
    return tmp_path


def test_the_scored_rows_of_a_covered_metric_are_corrected(folder: Path) -> None:
    found = correct_means(folder, manifest())
    assert list(found) == ["a"]
    assert found["a"]["value"] == pytest.approx(2 / 3)
    assert found["a"]["low"] < 0.2
    assert found["a"]["high"] == 1.0
    assert (found["a"]["label"], found["a"]["span"]) == ("good", None)


def test_grades_are_given_in_the_grades_of_the_labels(folder: Path) -> None:
    found = correct_means(folder, manifest(span=[1, 4]))["a"]
    assert found["value"] == pytest.approx(3.0)
    assert found["high"] == 4.0


def test_uninformative_judge_has_no_value_and_the_full_range(folder: Path) -> None:
    found = correct_means(folder, manifest(error={**ERROR, "gain": 0.01}, span=[1, 4]))["a"]
    assert (found["value"], found["low"], found["high"]) == (None, 1.0, 4.0)


@pytest.mark.parametrize(
    "known",
    [{}, {"calibration": None}, manifest(error=None), {"calibration": {"metrics": {"a": {"figures": {}}}}}],
    ids=["nothing", "none", "another way of counting verdicts", "made before errors were kept"],
)
def test_no_correction_without_a_known_error(folder: Path, known: dict[str, Any]) -> None:
    assert known_judge_errors(known) == {}
    assert correct_means(folder, known) == {}


def test_one_row_has_no_interval(tmp_path: Path) -> None:
    pq.write_table(pa.table({"metric": ["a"], "value": [0.5]}), tmp_path / SCORES)
    assert correct_means(tmp_path, manifest()) == {}


def columns(metric: str, rise: float) -> ScoreColumns:
    before = {f"row {i}": Score.scored(0.25 + i % 2 / 8) for i in range(200)}
    after = {row: Score.scored(0.25 + i % 2 / 8 + rise * (1 + i % 3) / 2) for i, row in enumerate(before)}
    return ScoreColumns(metric=metric, direction=Direction.HIGHER, a=before, b=after)


def test_a_difference_grows_by_as_much_as_the_judge_shrinks_it() -> None:
    [(metric, found)] = correct_differences(manifest(), manifest(), [columns("a", 0.1), columns("b", 0.1)]).items()
    assert metric == "a"
    assert found["value"] == pytest.approx(0.2, abs=0.002)
    assert found["low"] < 0.2 < found["high"]
    grades = correct_differences(manifest(span=[1, 5]), manifest(span=[1, 5]), [columns("a", 0.1)])["a"]
    assert grades["value"] == pytest.approx(0.8, abs=0.008)


def test_runs_of_two_judges_have_no_corrected_difference() -> None:
    other = manifest(error={**ERROR, "gain": 0.75})
    assert correct_differences(manifest(), other, [columns("a", 0.1)]) == {}
    assert correct_differences(manifest(), {}, [columns("a", 0.1)]) == {}
