"""Rows drawn for people to label: known probabilities, one row per group, and no scores."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from metric_core.errors import ConfigError
from metric_core.records import Direction, Score
from metric_core.stages import Stage
from tasks.calibration.label_sampling import SampleOptions, draw, sample_rows
from tests.tasks.reports import folders


def test_every_row_is_drawn_as_often_as_its_probability_says() -> None:
    groups = {"a": "x", "b": "x", "c": "x", "d": "y"}
    rows = ["a", "b", "c", "d", "e"]
    generator = np.random.default_rng(1)
    drawn: Counter[str] = Counter()
    for _ in range(3000):
        chosen = draw(rows, 2, groups, generator)
        assert len({groups.get(row, row) for row in chosen}) == 2
        drawn.update(chosen.keys())
        assert chosen == {row: pytest.approx(2 / 9 if groups.get(row) == "x" else 2 / 3) for row in chosen}
    shares = [drawn[row] / 3000 for row in rows]
    assert shares == pytest.approx([2 / 9, 2 / 9, 2 / 9, 2 / 3, 2 / 3], abs=0.03)


def test_the_table_has_texts_and_an_empty_column_but_no_scores(tmp_path: Path) -> None:
    ids = [f"r{number}" for number in range(20)]
    cells = {row: {"mine": Score.scored(1) if row != "r3" else Score.failed("x")} for row in ids}
    samples = [{"row_id": row, "row_number": number, "response": f"Answer {row}."} for number, row in enumerate(ids)]
    metric = {"mine": {"direction": Direction.HIGHER, "bounds": [0, 1]}}
    run = folders.write_run(tmp_path / "run", cells, {Stage.SAMPLES: samples}, metric, {"status": "completed"})
    table = sample_rows(run, SampleOptions(rows=19, label="faithful", metric="mine"))
    columns = ["id", "user_input", "retrieved_contexts", "response", "reference", "faithful", "label_probability"]
    assert table.column_names == columns
    assert (table["faithful"].null_count, set(table["label_probability"].to_pylist())) == (19, {1.0})
    assert set(table["id"].to_pylist()) == set(ids) - {"r3"}
    assert table["id"].to_pylist() != sorted(table["id"].to_pylist())
    assert table["response"].to_pylist() == [f"Answer {row}." for row in table["id"].to_pylist()]
    with pytest.raises(ConfigError, match="cannot draw 20 rows: there are 19 rows to draw from"):
        sample_rows(run, SampleOptions(rows=20, metric="mine"))
    with pytest.raises(ConfigError, match="has no metric 'other'; it has: mine"):
        sample_rows(run, SampleOptions(rows=2, metric="other"))
    with pytest.raises(ConfigError, match="the labels cannot have the name 'response'"):
        sample_rows(run, SampleOptions(rows=2, label="response"))
