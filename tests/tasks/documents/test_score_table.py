"""Ranking, colours and histograms of score tables."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metric_core.errors import RunFolderError
from metric_core.records import Direction, Score
from metric_core.schemas import SCHEMAS
from metric_core.stages import Stage
from tasks.documents.run import score_table
from tasks.documents.run.score_table import (
    NEUTRAL,
    TONES,
    MetricScale,
    ScoreSurvey,
    iterate_cells,
    read_cells,
    survey_cells,
)
from tasks.rows.records import build_table

FAITHFULNESS = MetricScale("faithfulness", Direction.HIGHER, (0, 1))
NOISE = MetricScale("noise", Direction.LOWER, (0, 1))
STYLE = MetricScale("style", Direction.NEITHER, (0, 1))
OPEN = MetricScale("open", Direction.HIGHER, None)


def cells_of(rows: dict[str, dict[str, Score]]) -> pa.Table:
    cells = [(row, metric, score) for row, scores in rows.items() for metric, score in scores.items()]
    return pa.table(
        {
            "row_id": pa.array([row for row, _, _ in cells], pa.string()),
            "metric": pa.array([metric for _, metric, _ in cells], pa.string()),
            "value": pa.array([score.value for _, _, score in cells], pa.float64()),
            "status": pa.array([str(score.status) for _, _, score in cells], pa.string()),
        }
    )


def survey(parts: Sequence[dict[str, dict[str, Score]]], most: int = 1000) -> ScoreSurvey:
    scales = [FAITHFULNESS, NOISE, STYLE, OPEN]
    return survey_cells(map(cells_of, parts), scales, {"faithfulness": (0, 1), "noise": (0, 1)}, most)


def order(rows: dict[str, dict[str, Score]]) -> Sequence[str]:
    return survey([rows]).worst


def test_a_low_value_is_worse_where_more_is_better() -> None:
    assert order({"a": {"faithfulness": Score.scored(0.9)}, "b": {"faithfulness": Score.scored(0.1)}}) == ["b", "a"]


def test_a_high_value_is_worse_where_less_is_better() -> None:
    assert order({"a": {"noise": Score.scored(0.1)}, "b": {"noise": Score.scored(0.9)}}) == ["b", "a"]


def test_a_failed_cell_counts_as_the_worst_value() -> None:
    rows = {
        "a": {"faithfulness": Score.scored(0.5), "noise": Score.scored(0.6)},
        "b": {"faithfulness": Score.scored(0.8), "noise": Score.failed("no reply")},
    }
    assert order(rows) == ["b", "a"]


def test_an_undefined_cell_does_not_count() -> None:
    rows = {
        "a": {"faithfulness": Score.scored(0.5), "noise": Score.undefined("no contexts")},
        "b": {"faithfulness": Score.scored(0.4), "noise": Score.scored(0.0)},
    }
    assert order(rows) == ["a", "b"]


def test_values_without_direction_or_range_do_not_count() -> None:
    rows = {
        "a": {"faithfulness": Score.scored(0.5), "style": Score.scored(0.0), "open": Score.scored(-100)},
        "b": {"faithfulness": Score.scored(0.4), "style": Score.scored(1.0), "open": Score.scored(100)},
    }
    assert order(rows) == ["b", "a"]


def test_rows_with_nothing_that_counts_come_last_in_their_order() -> None:
    nothing = {"faithfulness": Score.undefined("no claims")}
    assert order({"a": nothing, "b": {"faithfulness": Score.scored(1)}, "c": nothing}) == ["b", "a", "c"]


def test_equally_good_rows_keep_their_order() -> None:
    same = {"faithfulness": Score.scored(0.5)}
    assert order(dict.fromkeys("zaym", same)) == list("zaym")


def test_no_rows_have_no_order() -> None:
    assert order({}) == []


@pytest.mark.parametrize(
    ("metric_scale", "value", "tone"),
    [
        (FAITHFULNESS, 0.0, TONES[0]),
        (FAITHFULNESS, 0.5, "mid"),
        (FAITHFULNESS, 1.0, TONES[-1]),
        (NOISE, 0.0, TONES[-1]),
        (NOISE, 1.0, TONES[0]),
        (STYLE, 1.0, NEUTRAL),
        (OPEN, 1.0, NEUTRAL),
        (FAITHFULNESS, None, NEUTRAL),
        (MetricScale("scale", Direction.HIGHER, (1, 5)), 3.0, "mid"),
        (MetricScale("single", Direction.HIGHER, (1, 1)), 1.0, NEUTRAL),
        (MetricScale("cosine", Direction.HIGHER, (-1, 1)), -0.5, TONES[0]),
        (MetricScale("cosine", Direction.HIGHER, (-1, 1)), 0.5, "mid"),
        (MetricScale("temperature", Direction.HIGHER, (-5, 5)), 0.0, "mid"),
    ],
)
def test_tones_follow_direction_and_range(metric_scale: MetricScale, value: float | None, tone: str) -> None:
    assert metric_scale.tone(value) == tone


def test_goodness_stays_in_its_range() -> None:
    assert FAITHFULNESS.goodness(np.array([-3.0, 7.0])).tolist() == [0.0, 1.0]


def test_a_histogram_counts_the_values_of_its_metric() -> None:
    rows = {str(i): {"faithfulness": Score.scored(value)} for i, value in enumerate([0.0, 0.01, 0.5, 1.0])}
    rows["x"] = {"faithfulness": Score.failed("no reply"), "noise": Score.scored(0.5)}
    counts = survey([rows]).histograms["faithfulness"]
    assert sum(counts) == 4
    assert (counts[0], counts[10], counts[-1]) == (2, 1, 1)


def test_a_missing_score_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"scores\.parquet cannot be read"):
        read_cells(tmp_path / "scores.parquet")


VALUES = st.sampled_from([Score.scored(value / 4) for value in range(5)] + [Score.failed("no reply")])
ROWS = st.lists(st.dictionaries(st.sampled_from(["faithfulness", "noise"]), VALUES, min_size=1), max_size=12)


@given(ROWS, st.integers(1, 5), st.integers(0, 12))
def test_parts_of_the_table_say_what_the_whole_table_says(
    rows: list[dict[str, Score]], part_rows: int, most: int
) -> None:
    named = {f"row {number}": cells for number, cells in enumerate(rows)}
    ids = [*named]
    parts = [{row: named[row] for row in ids[start : start + part_rows]} for start in range(0, len(ids), part_rows)]
    whole, divided = survey([named]), survey(parts, most)
    assert (divided.rows, divided.worst) == (len(rows), whole.worst[:most])
    assert divided.histograms == whole.histograms


def write_scores(folder: Path, groups: Sequence[Sequence[str]]) -> Path:
    """Write a score table of a metric, a row group for each list of ids."""
    path = folder / "scores.parquet"
    with pq.ParquetWriter(path, SCHEMAS[Stage.AGGREGATION].arrow) as writer:
        for row_ids in groups:
            cells = [
                {"row_id": row_id, "metric": "m", "value": 0.5, "status": "scored", "reason": None, "label": None}
                for row_id in row_ids
            ]
            writer.write_table(build_table(Stage.AGGREGATION, cells))
    return path


@pytest.mark.parametrize("cells_at_once", [1, 2, 100])
def test_a_table_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cells_at_once: int) -> None:
    monkeypatch.setattr(score_table, "CELLS_AT_ONCE", cells_at_once)
    path = write_scores(tmp_path, ["ab", "c", "de"])
    parts = [*iterate_cells(path)]
    assert "".join(row for part in parts for row in part["row_id"].to_pylist()) == "abcde"
    assert len(parts) == {1: 3, 2: 2, 100: 1}[cells_at_once]
    assert read_cells(path)["row_id"].to_pylist() == [*"abcde"]
    assert [part.num_rows for part in iterate_cells(write_scores(tmp_path, []))] == [0]


def test_a_row_in_two_parts_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_scores(tmp_path, ["ab", "ca"])
    with pytest.raises(RunFolderError, match="the row 'a' has 2 cells of m"):
        read_cells(path)
    monkeypatch.setattr(score_table, "CELLS_AT_ONCE", 1)
    with pytest.raises(RunFolderError, match="the cells of the row 'a' are not together"):
        read_cells(path)
