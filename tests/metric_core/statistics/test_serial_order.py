"""Rows in serial order are recognized, and said in summary, comparison and gate."""

import numpy as np
import pytest

from metric_core.gates.checks import check_gate
from metric_core.gates.rules import AbsoluteRule, Gate, RegressionRule, Statistic, Threshold
from metric_core.records import Direction, Score
from metric_core.statistics.bounded_means import Bounds
from metric_core.statistics.comparison import compare_metrics
from metric_core.statistics.pairs import ScoreColumns
from metric_core.statistics.serial_order import is_serial
from metric_core.statistics.summary import SERIAL, summarize_distribution

RUNS = 200
WAVE = np.clip(0.7 + 0.2 * np.sin(np.arange(200) / 10), 0, 1)


@pytest.mark.parametrize(("share", "rows"), [(0.5, 100), (0.9, 30), (0.98, 100)])
def test_independent_rows_are_rarely_called_serial(share: float, rows: int) -> None:
    generator = np.random.default_rng(1)
    assert sum(is_serial((generator.random(rows) < share).astype(np.float64)) for _ in range(RUNS)) <= 2


def test_autocorrelated_rows_are_recognized() -> None:
    generator, found = np.random.default_rng(2), 0
    for _ in range(50):
        values = generator.normal(size=300)
        for row in range(1, 300):
            values[row] = 0.5 * values[row - 1] + np.sqrt(0.75) * values[row]
        found += is_serial(values)
    assert found >= 45


def columns(names: list[str], groups: dict[str, str] | None = None) -> ScoreColumns:
    b = {name: Score.scored(float(value)) for name, value in zip(names, WAVE, strict=True)}
    a = dict.fromkeys(names, Score.scored(0.6))
    return ScoreColumns(metric="faithfulness", direction=Direction.HIGHER, a=a, b=b, groups=groups, bounds=(0.0, 1.0))


def test_report_comparison_and_gate_say_so_in_the_order_of_the_file() -> None:
    shuffled = [f"{number * 73 % 200:03}" for number in range(200)]  # the order of the ids is not that of the file
    absolute = AbsoluteRule("faithfulness", Statistic.MEAN, Threshold(0.5))
    rules = Gate(absolute=(absolute,), regression=(RegressionRule(None, 0.1),))
    for groups in (None, {name: f"{number // 40}" for number, name in enumerate(shuffled)}):
        both = columns(shuffled, groups)
        [found] = compare_metrics([both])
        assert found.difference is not None
        assert found.difference.is_serial is (groups is None)
        said = [SERIAL in check.reason for check in check_gate(rules, [both]).checks]
        assert said == [groups is None] * 2
    assert summarize_distribution(WAVE.tolist(), Bounds(0.0, 1.0)).note == SERIAL
    assert summarize_distribution(WAVE[np.random.default_rng(3).permutation(200)].tolist(), Bounds(0, 1)).note is None


def test_a_file_sorted_by_all_its_topics_has_an_interval_that_holds_and_is_not_called_too_narrow() -> None:
    generator, shares = np.random.default_rng(555), np.repeat([0.2, 0.5, 0.8, 0.9, 0.95, 1.0], 50)
    called = held = 0
    for _ in range(40):
        found = summarize_distribution((generator.random(300) < shares).astype(float).tolist(), Bounds(0.0, 1.0))
        called += found.note == SERIAL
        assert found.interval is not None
        held += found.interval.low <= shares.mean() <= found.interval.high
    assert (called, held >= 37) == (40, True)
    assert "may be too narrow" in SERIAL
    assert "are these all there are? Then it holds" in SERIAL
