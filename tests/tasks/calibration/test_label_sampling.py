"""Rows drawn for people to label: known probabilities, one row per group, and no scores."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from metric_core.errors import ConfigError
from metric_core.records import Direction, Score
from metric_core.stages import Stage
from tasks.calibration.label_sampling import SampleOptions, draw, draw_from_strata, draw_sample, sample_table
from tasks.runs.finished_run import FinishedRun
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
    folder = folders.write_run(tmp_path / "run", cells, {Stage.SAMPLES: samples}, metric, {"status": "completed"})
    run = FinishedRun(folder)
    sample = draw_sample(run, SampleOptions(metric="mine", budget=19))
    table = sample_table(run, sample, "faithful")
    columns = ["id", "user_input", "retrieved_contexts", "response", "reference", "faithful", "label_probability"]
    assert table.column_names == columns
    assert (table["faithful"].null_count, set(table["label_probability"].to_pylist())) == (19, {1.0})
    assert set(table["id"].to_pylist()) == set(ids) - {"r3"}
    assert table["id"].to_pylist() != sorted(table["id"].to_pylist())
    assert table["response"].to_pylist() == [f"Answer {row}." for row in table["id"].to_pylist()]
    with pytest.raises(ConfigError, match="cannot draw 20 rows: there are 19 rows to draw from"):
        draw_sample(run, SampleOptions(metric="mine", budget=20))
    with pytest.raises(ConfigError, match="has no metric 'other'; it has: mine"):
        draw_sample(run, SampleOptions(metric="other", budget=2))
    with pytest.raises(ConfigError, match="the labels cannot have the name 'response'"):
        sample_table(run, sample, "response")


def test_strata_get_rows_where_labels_are_uncertain_and_hide_the_scores() -> None:
    scores = {f"r{number}": (0.0, 0.5, 1.0, 1.0)[number % 4] for number in range(400)}
    drawn, strata = draw_from_strata(scores, 100, 4, np.random.default_rng(1))
    of_score: dict[float, set[str]] = {}
    for row in drawn:
        of_score.setdefault(scores[row], set()).add(strata[row])
    assert sorted(map(len, of_score.values())) == [1, 1, 1]  # a stratum per score
    assert set(strata.values()) == {"A", "B", "C"}
    numbers = Counter(scores[row] for row in drawn)
    assert numbers[0.5] > numbers[1.0] > numbers[0.0] >= 2
    for row, probability in drawn.items():
        assert probability == numbers[scores[row]] / (200 if scores[row] == 1 else 100)
    assert list(drawn) != sorted(drawn, key=strata.__getitem__)  # in random order
    letters = set()
    for seed in range(40):
        drawn, strata = draw_from_strata(scores, 10, 4, np.random.default_rng(seed))
        letters |= {strata[row] for row in drawn if scores[row] == 0}
    assert letters >= {"A", "B", "C"}


def test_what_strata_cannot_be_is_refused(tmp_path: Path) -> None:
    ids = [f"r{number}" for number in range(20)]
    cells = {row: {"mine": Score.scored(number / 19)} for number, row in enumerate(ids)}
    samples = [{"row_id": row, "row_number": number, "response": f"{row}."} for number, row in enumerate(ids)]
    metric = {"mine": {"direction": Direction.HIGHER, "bounds": [0, 1]}}
    folder = folders.write_run(tmp_path / "run", cells, {Stage.SAMPLES: samples}, metric, {"status": "completed"})
    run = FinishedRun(folder)
    table = sample_table(run, draw_sample(run, SampleOptions(metric="mine", budget=12, strata=4)), "label")
    assert table.column_names[-1] == "label_stratum"
    assert table.num_rows == 12
    for options, message in (
        (
            SampleOptions(metric="mine", budget=12, by="document", strata=4),
            "name one of --strata, --active, --surest, --by",
        ),
        (SampleOptions(metric="mine", budget=12, strata=99), "wanted 2 to 20 strata, got 99"),
        (SampleOptions(metric="mine", budget=7, strata=4), "draw at least 2 of each"),
        (SampleOptions(metric="mine", budget=21, strata=4), "there are 20 rows"),
    ):
        with pytest.raises(ConfigError, match=message):
            draw_sample(run, options)
