"""A difference hangs on a few rows, on one part of them, or on one draw of the judge, or is robust."""

from collections.abc import Collection
from functools import partial

import numpy as np
import pytest

from metric_core.records import Direction, Score
from metric_core.statistics.comparison import ChangeOutcome, MetricComparison, compare_metrics
from metric_core.statistics.judge_variance import JudgeVariance
from metric_core.statistics.pairs import ScoreColumns, pair_scores
from metric_core.statistics.resampling import Floats
from metric_core.statistics.robustness import (
    DecidedDifference,
    JudgeNoise,
    OutcomeWithout,
    Part,
    Robustness,
    fewest_rows,
    noise_of,
)

ROWS = 200


def compare(a: Floats, b: Floats, left_out: Collection[str] = ()) -> tuple[ScoreColumns, MetricComparison]:
    cells = (
        {f"r{i:03}": Score.scored(float(value)) for i, value in enumerate(values) if f"r{i:03}" not in left_out}
        for values in (a, b)
    )
    before, after = cells
    column = ScoreColumns(metric="m", direction=Direction.HIGHER, a=before, b=after, bounds=(0.0, 1.0))
    return column, compare_metrics([column])[0]


def decide(column: ScoreColumns, compared: MetricComparison, without: OutcomeWithout) -> DecidedDifference:
    (pairs,) = pair_scores(column).pairs
    assert compared.difference is not None
    return DecidedDifference(
        rows=pairs.rows,
        values=pairs.differences,
        difference=compared.difference,
        outcome=compared.verdict,
        without=without,
    )


def find(a: Floats, b: Floats, parts: Collection[Part] = (), noise: JudgeNoise | None = None) -> Robustness:
    found = decide(*compare(a, b), lambda rows: compare(a, b, rows)[1].verdict).find_robustness([*parts], noise)
    assert found is not None
    return found


def part(name: str, first: int, last: int) -> Part:
    return Part(name, frozenset(f"r{i:03}" for i in range(first, last)))


def change_rows(count: int, value: float) -> tuple[Floats, Floats]:
    """Return scores of two runs, of which so many differ by a value."""
    a = np.full(ROWS, 0.5)
    b = a.copy()
    b[:count] += value
    return a, b


def test_many_rows_that_change_alike_are_robust() -> None:
    found = find(*change_rows(60, 0.2), [part("topic x", 0, 20), part("topic y", 20, 60), part("topic z", 60, 150)])
    assert found == Robustness(outcome=ChangeOutcome.BETTER, few=3, has_parts=True)


def test_rows_whose_removal_turns_the_outcome_are_as_few_as_possible() -> None:
    a, b = np.zeros(ROWS), np.zeros(ROWS)
    b[:7] = 1.0
    found = find(a, b)
    assert found.outcome == ChangeOutcome.BETTER
    assert 1 <= len(found.rows) <= 3
    for count in range(len(found.rows)):
        assert compare(a, b, found.rows[:count])[1].verdict == ChangeOutcome.BETTER
    assert compare(a, b, found.rows)[1].verdict == ChangeOutcome.UNCLEAR


def test_an_unclear_outcome_can_hang_on_rows_too() -> None:
    a, b = np.zeros(ROWS), np.zeros(ROWS)
    b[:10], a[10:13] = 1.0, 1.0
    found = find(a, b)
    assert found.outcome == ChangeOutcome.UNCLEAR
    assert found.rows
    assert compare(a, b, found.rows)[1].verdict == ChangeOutcome.BETTER


def test_a_difference_of_one_topic_hangs_on_it() -> None:
    found = find(
        *change_rows(40, 0.3), [part("topic travel", 0, 40), part("topic leave", 40, 80), part("all", 0, ROWS)]
    )
    assert (found.rows, found.parts) == ((), ("topic travel",))
    assert found.sentence == "hangs on topic travel: without it the outcome is another"


@pytest.mark.parametrize(("noise", "hangs"), [(0.0001, False), (0.5, True)])
def test_a_noisy_judge_may_turn_an_outcome(noise: float, hangs: bool) -> None:
    variance = JudgeVariance(40, noise, None, 0.0, noise)
    found = find(*change_rows(60, 0.2), noise=noise_of("m", [{"m": variance}, {}], ROWS))
    assert found.by_judge is hangs
    # Rows with the same text have the same verdicts.
    assert find(*change_rows(60, 0.2), noise=noise_of("m", [{"m": variance}, {}], 0)).by_judge is False
    assert noise_of("other", [{"m": variance}, {}], ROWS) is None


def test_what_is_not_tested_hangs_on_nothing() -> None:
    column, compared = compare(np.ones(3), np.ones(3))
    assert compared.difference is not None
    decided = DecidedDifference(
        rows=tuple(column.b), values=np.zeros(3), difference=compared.difference, outcome="", without=lambda _: ""
    )
    assert decided.find_robustness([]) is None


def test_many_rows_are_decided_a_few_times() -> None:
    generator = np.random.default_rng(1)
    a = generator.random(10_000)
    b = np.clip(a + generator.normal(0.002, 0.1, 10_000), 0, 1)
    column, compared = compare(a, b)
    asked = 0

    def without(rows: Collection[str]) -> str:
        nonlocal asked
        asked += 1
        return ChangeOutcome.UNCLEAR if len(rows) > 17 else compared.verdict

    decided = decide(column, compared, without)
    parts = [Part(f"document {i}", frozenset(decided.rows[i::2_000])) for i in range(2_000)]
    found = decided.find_robustness(parts)
    assert found is not None
    assert asked <= 25


def test_the_fewest_rows_are_found_wherever_the_search_begins() -> None:
    order = [str(i) for i in range(20)]
    for fewest in (1, 2, 9, 20):
        for first in (1, 5, 20):
            assert len(fewest_rows(order, "x", partial(_turned_from, fewest), first)) == fewest
    assert fewest_rows(order, "x", partial(_turned_from, 21)) == ()


def _turned_from(fewest: int, rows: Collection[str]) -> str:
    return "x" if len(rows) < fewest else "y"
