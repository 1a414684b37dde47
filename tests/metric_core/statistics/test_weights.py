"""Rows with weights: means, intervals, differences, gates and slices count them."""

import numpy as np
import pytest

from metric_core.gates.checks import check_gate
from metric_core.gates.rules import AbsoluteRule, Gate, Outcome, Statistic, Threshold
from metric_core.records import Direction, Score
from metric_core.statistics.bounded_means import Bounds, estimate_interval
from metric_core.statistics.comparison import compare_metrics
from metric_core.statistics.pairs import ScoreColumns
from metric_core.statistics.resampling import Units
from metric_core.statistics.slice_summary import SlicedCells, summarize_slices
from metric_core.statistics.slices import divide_rows
from metric_core.statistics.summary import CellCounts

SCORE = Bounds(0.0, 1.0)
ROWS = [f"{number:03}" for number in range(200)]
IS_RARE = np.arange(200) % 5 == 0
WEIGHTS = dict(zip(ROWS, np.where(IS_RARE, 2.5, 0.625).tolist(), strict=True))
CELLS = {row: Score.scored(0.5 if is_rare else 1.0) for row, is_rare in zip(ROWS, IS_RARE, strict=True)}


def test_equal_weights_change_nothing() -> None:
    values = np.resize([0.0, 1.0, 1.0], 60)
    plain, weighted = Units.from_values(values), Units.from_values(values, None, np.ones(60))
    assert estimate_interval(plain, SCORE, 1) == estimate_interval(weighted, SCORE, 1)
    names = [f"{number // 5}" for number in range(60)]
    assert Units.from_values(values, names, np.ones(60)).sums.tolist() == Units.from_values(values, names).sums.tolist()


def test_a_summary_counts_rows_by_weight_and_gives_the_mean_of_all_rows_beside_it() -> None:
    counts = CellCounts("faithfulness", Direction.HIGHER, (0.0, 1.0))
    for row, cell in CELLS.items():
        counts.add(cell, weight=WEIGHTS[row])
    found = counts.summarize().distribution
    assert found is not None
    assert found.mean == pytest.approx(0.75)
    assert found.mean_of_rows == pytest.approx(0.9)
    assert found.interval is not None
    assert found.interval.low < 0.75 < found.interval.high < 0.9
    assert found.independent_groups is not None
    assert 50 < found.independent_groups < 200


def test_a_comparison_counts_changes_by_weight() -> None:
    fallen = CELLS | {row: Score.scored(0.0) for row, is_rare in zip(ROWS, IS_RARE, strict=True) if is_rare}
    means = []
    for weights in (None, WEIGHTS):
        both = ScoreColumns(
            metric="m", direction=Direction.HIGHER, a=CELLS, b=fallen, bounds=(0.0, 1.0), weights=weights
        )
        [found] = compare_metrics([both])
        assert found.difference is not None
        assert found.difference.interval is not None
        assert found.difference.interval.low < found.difference.mean < found.difference.interval.high < 0
        means.append(found.difference.mean)
    assert means == [pytest.approx(-0.1), pytest.approx(-0.25)]


@pytest.mark.parametrize("statistic", [Statistic.MEAN, Statistic.MEDIAN])
def test_a_gate_counts_rows_by_weight(statistic: Statistic) -> None:
    threshold = Threshold(0.85 if statistic is Statistic.MEAN else 0.9)
    gate = Gate(absolute=(AbsoluteRule("faithfulness", statistic, threshold),))
    weights = {row: 6.0 if is_rare else 0.1 for row, is_rare in zip(ROWS, IS_RARE, strict=True)}
    outcomes = [
        check_gate(
            gate,
            [
                ScoreColumns(
                    metric="faithfulness", direction=Direction.HIGHER, a={}, b=CELLS, bounds=(0.0, 1.0), weights=each
                )
            ],
        ).outcome
        for each in (None, weights)
    ]
    assert outcomes == [Outcome.PASSED, Outcome.FAILED]


def test_slices_count_rows_by_weight() -> None:
    sliced = divide_rows("half", {row: str(int(row) % 2) for row in ROWS})
    cells = SlicedCells("faithfulness", Direction.HIGHER, (0.0, 1.0))
    cells.add_all(((row, cell, "") for row, cell in CELLS.items()), [sliced], WEIGHTS)
    [column] = summarize_slices([cells], [sliced])
    for part in column.slices:
        distribution = part.metrics[0].distribution
        assert distribution is not None
        assert distribution.mean == pytest.approx(0.75)


@pytest.mark.simulation
def test_an_interval_of_weighted_rows_holds_the_mean_of_the_traffic_in_95_of_100_runs() -> None:
    generator, held = np.random.default_rng(5), 0
    for seed in range(300):
        topic = (generator.random(200) < 0.2) * 1
        values = (generator.random(200) < np.array([0.95, 0.7])[topic]) * 1.0
        found = estimate_interval(Units.from_values(values, None, np.array([0.625, 2.5])[topic]), SCORE, seed)
        assert found is not None
        held += found.low <= 0.825 <= found.high
    assert held >= 274
