"""Bias-corrected means of a run, from its scores and the judge's error in its manifest."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metric_core.records import Direction, Score
from metric_core.statistics.pairs import ScoreColumns
from tasks.calibration.bias_correction import correct_differences, correct_means, find_corrections, known_judge_errors
from tasks.calibration.run_labels import RunLabels, write_labels
from tasks.runs.run_folder import SCORES
from tests.run_records import make_record

ERROR = {
    "bad": 0.25,
    "good": 0.75,
    "of_bad": {"above": 500, "below": 1500},
    "of_good": {"above": 1500, "below": 500},
}


def manifest(**facts: Any) -> dict[str, Any]:
    return {"calibration": {"metrics": {"a": {"label": "good", "span": None, "error": ERROR, **facts}}}}


def means_of(folder: Path, content: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the bias-corrected means of a run as JSON."""
    return {key: mean.model_dump() for key, mean in correct_means(folder, make_record(content)).items()}


def differences_of(
    before: tuple[Path, dict[str, Any]], after: tuple[Path, dict[str, Any]], columns: Iterable[ScoreColumns]
) -> dict[str, dict[str, Any]]:
    """Return the differences of the bias-corrected means of two runs as JSON."""
    first, second = ((folder, make_record(content)) for folder, content in (before, after))
    return {key: mean.model_dump() for key, mean in correct_differences(first, second, columns).items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run folder with the scores of two metrics."""
    values = [*(("a", value) for value in (0.25, 0.75, 0.75, 0.25, 0.75, 0.75, None)), *(("b", 0.1) for _ in range(4))]
    rows = [{"row_id": str(i), "metric": metric, "value": value} for i, (metric, value) in enumerate(values)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / SCORES)
    return tmp_path


def test_the_scored_rows_of_a_covered_metric_are_corrected(folder: Path) -> None:
    found = means_of(folder, manifest())
    assert list(found) == ["a"]
    assert found["a"]["value"] == pytest.approx(2 / 3)
    assert found["a"]["low"] < 0.3
    assert found["a"]["high"] == 1.0
    assert (found["a"]["label"], found["a"]["span"]) == ("good", None)


def test_grades_are_given_in_the_grades_of_the_labels(folder: Path) -> None:
    found = means_of(folder, manifest(span=[1, 4]))["a"]
    assert found["value"] == pytest.approx(3.0)
    assert found["high"] == 4.0


def test_uninformative_judge_has_no_value_and_the_full_range(folder: Path) -> None:
    hardly = {**ERROR, "good": 0.26, "of_good": {"above": 520, "below": 1480}}
    found = means_of(folder, manifest(error=hardly, span=[1, 4]))["a"]
    assert (found["value"], found["low"], found["high"]) == (None, 1.0, 4.0)


@pytest.mark.parametrize(
    "known",
    [{}, {"calibration": None}, manifest(error=None)],
    ids=["nothing", "none", "another way of counting verdicts"],
)
def test_no_correction_without_a_known_error(folder: Path, known: dict[str, Any]) -> None:
    assert known_judge_errors(make_record(known)) == {}
    assert means_of(folder, known) == {}


@pytest.mark.parametrize("rows", [1, 4])
def test_few_rows_have_no_corrected_mean_or_difference(tmp_path: Path, rows: int) -> None:
    pq.write_table(pa.table({"metric": ["a"] * rows, "value": [0.5] * rows}), tmp_path / SCORES)
    cells = {str(row): Score.scored(0.5) for row in range(rows)}
    column = ScoreColumns(metric="a", direction=Direction.HIGHER, a=cells, b=cells)
    for found in (
        means_of(tmp_path, manifest()),
        differences_of(side(manifest()), side(manifest()), [column]),
    ):
        assert found["a"]["value"] is None
        assert found["a"]["reason"] == "fewer than 5 scored rows or groups, or one or two decide the mean"


def side(content: dict[str, Any]) -> tuple[Path, dict[str, Any]]:
    """Return a run without labels of its own."""
    return Path("no such folder"), content


def columns(metric: str, rise: float) -> ScoreColumns:
    before = {f"row {i}": Score.scored(0.25 + i % 2 / 8) for i in range(200)}
    after = {row: Score.scored(0.25 + i % 2 / 8 + rise * (1 + i % 3) / 2) for i, row in enumerate(before)}
    return ScoreColumns(metric=metric, direction=Direction.HIGHER, a=before, b=after)


def test_a_difference_grows_by_as_much_as_the_judge_shrinks_it() -> None:
    [(metric, found)] = differences_of(
        side(manifest()), side(manifest()), [columns("a", 0.1), columns("b", 0.1)]
    ).items()
    assert metric == "a"
    assert found["value"] == pytest.approx(0.2, abs=0.002)
    assert found["low"] < 0.2 < found["high"]
    grades = differences_of(side(manifest(span=[1, 5])), side(manifest(span=[1, 5])), [columns("a", 0.1)])["a"]
    assert grades["value"] == pytest.approx(0.8, abs=0.008)


def test_a_run_outside_the_range_of_the_judge_has_no_corrected_difference() -> None:
    found = differences_of(side(manifest()), side(manifest()), [columns("a", 0.6)])["a"]
    assert (found["value"], found["low"], found["high"]) == (None, -1.0, 1.0)
    assert "is above 0.750, that of good labelled rows" in found["reason"]


def test_runs_of_two_judges_have_no_corrected_difference() -> None:
    other = manifest(error={**ERROR, "good": 0.9})
    assert differences_of(side(manifest()), side(other), [columns("a", 0.1)]) == {}
    assert differences_of(side(manifest()), side({}), [columns("a", 0.1)]) == {}


def label_rows(folder: Path, count: int, *, is_random: bool = True, shift: float = 0.0) -> dict[str, Any]:
    """Return run.json of a run of 200 rows, of which some are labelled; every fifth row is scored wrongly."""
    truth = [float(number % 10 < 7 + shift * 10) for number in range(200)]
    scores = [value if number % 5 else 1 - value for number, value in enumerate(truth)]
    labels = [value if number < count else None for number, value in enumerate(truth)]
    rows = [str(number) for number in range(200)]
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"row_id": rows, "metric": ["a"] * 200, "value": scores}), folder / SCORES)
    write_labels(folder, "a", RunLabels(rows=rows, scores=scores, labels=labels))
    return manifest(own={"label": "mine", "span": None, "is_random": is_random}, compared=66)


def test_labels_of_a_random_sample_of_the_run_come_before_a_calibration(tmp_path: Path) -> None:
    powered = means_of(tmp_path, label_rows(tmp_path, 100))["a"]
    assert (powered["method"], powered["label"], powered["labelled"], powered["rows"]) == (
        "prediction-powered",
        "mine",
        100,
        200,
    )
    assert powered["low"] < 0.7 < powered["high"]
    whole = means_of(tmp_path, label_rows(tmp_path, 200))["a"]
    assert (whole["value"], whole["method"]) == (pytest.approx(0.7), "labels alone")
    elsewhere = means_of(tmp_path, label_rows(tmp_path, 100, is_random=False))["a"]
    assert (elsewhere["method"], elsewhere["label"], elsewhere["labelled"]) == ("judge error", "good", 66)


@pytest.mark.parametrize(("is_random", "method"), [(True, "prediction-powered"), (False, "judge error")])
def test_a_gate_reads_only_means_by_a_random_sample_of_the_run(tmp_path: Path, is_random: bool, method: str) -> None:
    known = label_rows(tmp_path, 100, is_random=is_random)
    correction = find_corrections(tmp_path, make_record(known))["a"]
    assert (str(correction.method), correction.for_gate() is not None) == (method, is_random)


def test_the_difference_of_two_runs_with_labels_of_their_own(tmp_path: Path) -> None:
    before, after = (label_rows(tmp_path / name, 100, shift=shift) for name, shift in (("a", 0.0), ("b", 0.2)))
    found = differences_of((tmp_path / "a", before), (tmp_path / "b", after), [columns("a", 0.1)])["a"]
    assert (found["method"], found["label"]) == ("prediction-powered", "mine")
    assert found["value"] == pytest.approx(0.2, abs=0.01)
    assert found["low"] < 0.2 < found["high"]


def test_labels_that_say_nothing_about_other_rows_are_refused_with_a_reason(folder: Path) -> None:
    entry = means_of(folder, manifest(error=None, refused="they are grades", compared=80))["a"]
    assert (entry["value"], entry["method"], entry["reason"]) == (None, "none", "they are grades")


@pytest.mark.parametrize(("value", "kind"), [(0.97, "above 0.750, that of good"), (0.02, "below 0.250, that of bad")])
def test_a_run_that_the_judge_scores_as_no_labelled_row_is_not_corrected(
    tmp_path: Path, value: float, kind: str
) -> None:
    rows = [{"row_id": str(i), "metric": "a", "value": value + 0.01 * (i % 3 - 1)} for i in range(60)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / SCORES)
    entry = means_of(tmp_path, manifest())["a"]
    assert (entry["value"], entry["low"], entry["high"], entry["method"]) == (None, 0.0, 1.0, "none")
    assert kind in entry["reason"]
