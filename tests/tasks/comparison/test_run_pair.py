"""Pairs of runs: matching and grouping of rows, and messages if they cannot be matched."""

import json
from pathlib import Path
from typing import Any

import pytest

from metric_core.errors import ConfigError
from metric_core.records import Direction, Score, Status
from metric_core.stages import Stage
from tasks.comparison.run_pair import Matching, RunPair
from tasks.runs import row_slicing
from tasks.runs.finished_run import FinishedRun
from tests.tasks import compared
from tests.tasks.reports import folders


def pair_of(a: Path, b: Path, **matching: Any) -> RunPair:
    return RunPair.from_runs(FinishedRun(a), FinishedRun(b), Matching(**matching))


def write_run_with_own_ids(folder: Path, **columns: str) -> Path:
    """Write a run of two rows whose ids contain the name of the folder."""
    samples = [
        {"row_id": f"{folder.name}-{i}", "row_number": i, "user_input": f"Why {i}?", "response": "So.", **columns}
        for i in (1, 2)
    ]
    scores = {str(sample["row_id"]): {"faithfulness": Score.scored(0.5)} for sample in samples}
    metrics = {"faithfulness": compared.METRICS["faithfulness"]}
    return folders.write_run(folder, scores, {Stage.SAMPLES: samples}, metrics, {"status": "completed"})


def test_every_metric_has_its_cells_and_direction(tmp_path: Path) -> None:
    pair = pair_of(compared.write_run(tmp_path / "a", 0.5), compared.write_run(tmp_path / "b", 0.7))
    columns = {column.metric: column for column in pair.columns()}
    assert list(columns) == list(compared.METRICS)
    assert columns["noise_sensitivity"].direction is Direction.LOWER
    assert columns["faithfulness"].b["row-01"].value == pytest.approx(0.75)
    assert columns["nv_accuracy"].a["row-01"].status is Status.UNDEFINED
    assert columns["faithfulness"].groups is None


def test_rows_can_be_matched_by_a_column(tmp_path: Path) -> None:
    a, b = write_run_with_own_ids(tmp_path / "a"), write_run_with_own_ids(tmp_path / "b")
    with pytest.raises(ConfigError, match=r"no row in common: no id is in both.*--match user_input"):
        pair_of(a, b)
    [column] = pair_of(a, b, match="user_input").columns()
    assert list(column.a) == list(column.b) == ["Why 1?", "Why 2?"]


def test_rows_cannot_be_matched_by_a_column_with_equal_values(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be matched by response: two rows of"):
        pair_of(write_run_with_own_ids(tmp_path / "a"), write_run_with_own_ids(tmp_path / "b"), match="response")


def test_rows_are_grouped_by_a_column_of_the_users_own(tmp_path: Path) -> None:
    pair = pair_of(compared.write_run(tmp_path / "a", 0.5), compared.write_run(tmp_path / "b", 0.7), by="topic")
    groups = pair.columns()[0].groups
    assert groups is not None
    assert len(set(groups.values())) == 10


@pytest.mark.parametrize(
    ("column", "message"),
    [("subject", "there are: user_input, response, reference, topic"), ("retrieved_contexts", "holds no single text")],
)
def test_invalid_grouping_column_is_named(tmp_path: Path, column: str, message: str) -> None:
    a = compared.write_run(tmp_path / "a", 0.5)
    with pytest.raises(ConfigError, match=message):
        pair_of(a, a, by=column)


def test_changes_are_listed_by_column(tmp_path: Path) -> None:
    pair = pair_of(compared.write_run(tmp_path / "a", 0.5), compared.write_run(tmp_path / "b", 0.7, answer="In Cork."))
    changes = pair.changes()
    assert set(changes.changed.values()) == {("response",)}
    assert len(changes.changed) == compared.ROWS
    json.dumps(dict(changes.changed))


def test_rows_of_both_runs_are_in_the_slice_of_the_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_slicing, "MAX_SLICES", 3)
    a, b = compared.write_run(tmp_path / "a", 0.5), compared.write_run(tmp_path / "b", 0.7, first=10)
    pair = pair_of(a, b, slices=("topic",), kept={"topic": ("topic 7", "gone")})
    [sliced] = pair.slices
    assert (sliced.column, sliced.merged, len(sliced.values)) == ("topic", 7, 50)
    assert sliced.sizes == {"topic 0": 5, "topic 1": 5, "topic 7": 5, "(other values)": 35}
    parts = pair.columns()[0].split(sliced)
    assert {value: (len(part.a), len(part.b)) for value, part in parts.items()} == {
        "topic 0": (4, 4),
        "topic 1": (4, 4),
        "topic 7": (4, 4),
        "(other values)": (28, 28),
    }


def test_a_baseline_may_lack_the_column_of_the_slices(tmp_path: Path) -> None:
    a = write_run_with_own_ids(tmp_path / "a")
    b = write_run_with_own_ids(tmp_path / "b", extras='{"topic": "x"}')
    pair = pair_of(a, b, match="user_input", slices=("topic",))
    assert [sliced.sizes for sliced in pair.slices] == [{"x": 2}]
    with pytest.raises(ConfigError, match="rows cannot be sliced by topic: there is no column 'topic'"):
        pair_of(b, a, match="user_input", slices=("topic",))
