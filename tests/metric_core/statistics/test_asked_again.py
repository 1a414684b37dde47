"""Evidence from questions that are asked again: what it is worth, and how many questions it takes."""

import numpy as np
import pytest

from metric_core.statistics.alarms import AlarmSettings
from metric_core.statistics.asked_again import POWER, RUNS_TESTED, count_rows, has_returned, is_changed, log_e_value

ROWS, WEEKS = 60, 20_000


@pytest.mark.parametrize(("noise", "earlier"), [(0.01, 3), (0.05, 3), (0.3, 1), (0.3, 8)])
def test_the_expected_e_value_of_an_unchanged_judge_is_at_most_1(noise: float, earlier: int) -> None:
    """Rows differ in how they fluctuate: some never do, some often."""
    generator = np.random.default_rng(1)
    shares = generator.beta(0.2, 0.2 / noise, ROWS)
    found = []
    for _ in range(WEEKS // 10):
        nights = generator.random((earlier + 1, ROWS)) < shares
        means = nights[1:].mean(axis=0).tolist()
        found.append(np.exp(log_e_value(nights[0].astype(float).tolist(), [1] * ROWS, means, [earlier] * ROWS)))
    error = np.std(found) / len(found) ** 0.5
    assert np.mean(found) <= 1 + 3 * error


def test_small_shifts_of_all_probabilities_are_evidence_and_tiny_ones_are_not() -> None:
    usual = [0.005] * 160
    shifted = log_e_value([0.1] * 160, [1] * 160, usual, [3] * 160)
    restarted = log_e_value([0.01] * 160, [1] * 160, usual, [3] * 160)
    assert shifted > np.log(20 / 0.9 * 366)
    assert restarted < np.log(20)


@pytest.mark.parametrize("drift", [0.05, 0.1, 0.2, 0.5])
def test_a_larger_change_takes_fewer_rows(drift: float) -> None:
    count, power = count_rows(drift, rows=1000)
    assert power >= POWER
    assert count < count_rows(drift / 1.5, rows=1000)[0]
    assert count <= count_rows(drift, rows=1000, runs_of_year=8784)[0]


def test_a_small_anchor_is_asked_about_within_a_week_and_tells_less() -> None:
    count, power = count_rows(0.1, rows=40)
    assert RUNS_TESTED * count >= 40 > RUNS_TESTED * (count - 1)
    assert power < POWER / 2
    assert count_rows(0.1, rows=1) == (1, 0.0)


def test_a_change_is_told_at_the_error_that_the_judges_share() -> None:
    settings = AlarmSettings(runs=366)
    enough = np.log(20 / 0.9 * 366)
    assert is_changed([0.0, enough + 0.01], 200, settings=settings)
    assert not is_changed([0.0, enough - 0.01], 200, settings=settings)
    assert not is_changed([0.0, enough + 0.01], 200, judges=2, settings=settings)
    assert not is_changed([enough + 5] + [0.0] * 12, 200, settings=settings), "only the last nights count"
    assert not is_changed([enough + 5, 0.0], 1, settings=settings), "the night before was in another year"


def test_a_judge_has_returned_if_next_to_nothing_of_a_change_is_left() -> None:
    assert has_returned(0.02, drift=0.1)
    assert not has_returned(0.03, drift=0.1)
