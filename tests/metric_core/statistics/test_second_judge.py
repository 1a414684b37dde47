"""A second judge is asked about few rows, and its scores stand in for those of the first where they decide."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metric_core.records import Direction, Score
from metric_core.statistics.bounded_means import Bounds
from metric_core.statistics.earlier_runs import adjust_differences
from metric_core.statistics.pairs import Pairs, ScoreColumns, pair_scores
from metric_core.statistics.second_judge import (
    Candidates,
    choose_rows,
    judge_columns,
    judge_pairs,
    most_rows,
    order_by_change,
    stand_in,
)

ROWS = tuple("abcdefgh")
BEFORE = np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0])
AFTER = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0])


def pairs(earlier: np.ndarray | None = None) -> Pairs:
    return Pairs(None, ROWS, BEFORE, AFTER, None, Bounds(0.0, 1.0), earlier)


@given(st.lists(st.sets(st.integers(0, 40)), max_size=4), st.integers(1, 20))
def test_at_most_as_many_rows_are_chosen_as_allowed(sets: list[set[int]], most: int) -> None:
    candidates = [Candidates(f"m{number}", [*map(str, rows)], number % 2 == 0) for number, rows in enumerate(sets)]
    chosen = choose_rows(candidates, most)
    assert len(set().union(*chosen.values())) <= most
    if len(set().union(*sets)) <= most:
        assert sum(map(len, chosen.values())) == sum(map(len, sets)), "there is room for all"
    for each in candidates:
        assert set(chosen.get(each.metric, ())) <= set(each.rows)


def test_rows_whose_score_changed_are_ordered_by_their_change() -> None:
    assert order_by_change(pairs()) == ["a", "b", "c", "g", "e"]
    assert most_rows(300) == 30


def test_a_row_without_a_verdict_takes_that_of_a_row_with_a_similar_change() -> None:
    assert stand_in(order_by_change(pairs()), {"a": (1.0, 1.0), "e": (0.0, 1.0)}) == {
        "a": (1.0, 1.0),
        "b": (1.0, 1.0),
        "c": (1.0, 1.0),
        "g": (0.0, 1.0),
        "e": (0.0, 1.0),
    }
    assert stand_in(["a", "b"], {"a": (None, 1.0)}) == {}


def test_pairs_take_its_scores_and_keep_what_chance_did_to_the_baseline() -> None:
    judged = judge_pairs(pairs(np.array([BEFORE, BEFORE])), {"a": (0.0, 0.0), "e": (0.0, 1.0)})
    assert judged.differences.tolist() == [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0]
    assert judged.earlier is not None
    assert (judged.earlier == judged.a).all()
    assert adjust_differences(judged).values.tolist() == judged.differences.tolist()
    assert judge_pairs(pairs(), {}).differences.tolist() == pairs().differences.tolist()


@pytest.mark.parametrize("has_baseline", [True, False])
def test_the_cells_of_a_gate_take_its_scores(has_baseline: bool) -> None:
    a, b = (
        {row: Score.scored(float(value)) for row, value in zip(ROWS, values, strict=True)} for values in (BEFORE, AFTER)
    )
    columns = ScoreColumns(metric="m", direction=Direction.HIGHER, a=a if has_baseline else {}, b=b)
    paired = pair_scores(columns).pairs
    first = 1.0 if has_baseline else None
    judged = judge_columns(columns, paired, {"a": (first, 1.0), "d": (first, 0.0), "unknown": (first, 1.0)})
    changed = {row for row in ROWS if judged.b[row] != b[row]}
    assert changed == ({"a", "b", "c", "d", "g"} if has_baseline else {"a", "d"})
    assert judged.a.keys() == columns.a.keys()
