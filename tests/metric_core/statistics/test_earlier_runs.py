"""Intervals of a difference that know earlier runs of the same rows."""

from collections.abc import Callable

import numpy as np
import pytest

from metric_core.records import Direction, Score
from metric_core.statistics.bounded_means import Bounds
from metric_core.statistics.comparison import Difference, compare_metrics
from metric_core.statistics.earlier_runs import Adjusted, adjust_differences
from metric_core.statistics.pairs import Pairs, ScoreColumns
from metric_core.statistics.resampling import Floats, Interval

ROWS = 200
NAMES = tuple(f"{row:03}" for row in range(ROWS))


def nights(count: int, seed: int = 1) -> Floats:
    """Return nights of rows of 0 and 1, a fifth of which come out either way."""
    generator = np.random.default_rng(seed)
    chance = generator.choice([0.0, 0.5, 1.0], ROWS, p=[0.2, 0.2, 0.6])
    return (generator.random((count, ROWS)) < chance).astype(np.float64)


def pairs(values: Floats, earlier: Floats | None = None, groups: list[str] | None = None) -> Pairs:
    """Return the pairs of the last two nights, with those before them."""
    before = values[:-2] if earlier is None else earlier
    return Pairs(None, NAMES, values[-2], values[-1], groups, Bounds(0.0, 1.0), before)


def compare(values: Floats) -> Difference:
    """Return the comparison of the last two nights, with those before them."""
    *before, a, b = [
        {name: Score.scored(float(cell)) for name, cell in zip(NAMES, night, strict=True)} for night in values
    ]
    columns = ScoreColumns(metric="m", direction=Direction.HIGHER, a=a, b=b, bounds=(0.0, 1.0), earlier=before)
    [found] = compare_metrics([columns])
    assert found.difference is not None
    return found.difference


def test_earlier_runs_narrow_the_interval_and_are_named() -> None:
    alone, known = compare(nights(11)[-2:]), compare(nights(11))
    assert alone.earlier is None
    assert known.earlier is not None
    assert (known.earlier.runs, known.earlier.noise) == (9, 0.0)
    assert 0.6 < known.earlier.weight <= 0.9
    assert alone.interval is not None
    assert known.interval is not None
    assert known.interval.high - known.interval.low < 0.85 * (alone.interval.high - alone.interval.low)
    assert known.mean == alone.mean, "the difference of the means stays that of the two runs"
    assert known.interval.low < known.earlier.estimate < known.interval.high


@pytest.mark.parametrize("change", [lambda values: values[-2:], lambda values: values[-2:] * np.array([[1.0], [0.0]])])
def test_without_earlier_runs_the_differences_stay(change: Callable[[Floats], Floats]) -> None:
    found = adjust_differences(pairs(change(nights(2))))
    assert found.earlier is None
    assert not found.noise


def test_runs_that_move_as_a_whole_widen_the_interval_and_replace_nothing() -> None:
    generator = np.random.default_rng(4)
    values = np.clip(generator.normal(0.6, 0.1, ROWS) + generator.normal(0, 0.03, (11, ROWS)), 0, 1)
    quiet, moved = values, values + 0.05 * generator.standard_normal((11, 1))
    found = adjust_differences(pairs(moved))
    assert found.earlier is not None
    assert found.earlier.noise is not None
    assert 0.02 < found.earlier.noise < 0.1
    assert found.earlier.weight == 0
    assert compare(quiet).earlier is not None
    assert adjust_differences(pairs(quiet)).noise == 0
    moved[-1] = moved[-2] - 0.02
    widened = compare(moved)
    assert widened.interval is not None
    assert widened.interval.low < 0 < widened.interval.high
    assert widened.test is not None
    assert widened.test.p > 0.5


def test_two_earlier_runs_narrow_the_interval_but_say_nothing_about_shared_noise() -> None:
    found = adjust_differences(pairs(nights(4))).earlier
    assert found is not None
    assert (found.runs, found.noise) == (2, None)


def test_an_earlier_run_that_lacks_rows_does_not_count_and_a_row_without_one_is_not_adjusted() -> None:
    values = nights(6)
    earlier = values[:-2].copy()
    earlier[0, :30] = np.nan
    earlier[1:, 0] = np.nan
    found = adjust_differences(pairs(values, earlier=earlier))
    assert found.earlier is not None
    assert found.earlier.runs == 3
    assert found.values[0] == pairs(values).differences[0]


def test_groups_share_their_noise() -> None:
    """Rows of a group move together every night: among five rows of each, that is no noise of the runs."""
    generator = np.random.default_rng(3)
    values = 0.5 + np.repeat(generator.normal(0, 0.05, (11, ROWS // 5)), 5, axis=1)
    groups = [str(row // 5) for row in range(ROWS)]
    found = adjust_differences(pairs(values, groups=groups))
    assert found.noise == 0


def test_noise_widens_both_ends_and_moderates_the_test() -> None:
    adjusted = Adjusted(np.array([0.1]), 0.1, noise=0.05)
    widened = adjusted.widen(Interval(0.05, 0.15))
    assert widened.low == pytest.approx(0.1 - np.hypot(0.05, 1.96 * 0.05), abs=1e-4)
    assert widened.high == pytest.approx(0.1 + np.hypot(0.05, 1.96 * 0.05), abs=1e-4)
    assert adjusted.moderate(0.0) == pytest.approx(0.0455, abs=1e-3)
    assert Adjusted(np.array([0.1]), 0.1).moderate(0.01) == 0.01
