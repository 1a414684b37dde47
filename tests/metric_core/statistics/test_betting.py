"""E-values of bounded means: exact properties, by enumeration and against brute force."""

from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metric_core.statistics.betting import (
    MOST_STAKED,
    average_over_all_sets,
    largest_drop,
    log_e_values,
    log_e_values_above,
    smallest_drop,
)

DIFFERENCES = st.lists(st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.25, 1.0]), min_size=1, max_size=30)

Law = tuple[tuple[float, float], ...]
"""Values of a row with their probabilities."""

FAIR: Law = ((-1.0, 0.5), (1.0, 0.5))
RARE: Law = ((-1.0, 0.1), (1 / 9, 0.9))
"""Mostly a little better, and sometimes lost."""
RISING: Law = ((1.0, 0.5), (0.0, 0.5))
FALLING: Law = ((-1.0, 0.5), (0.0, 0.5))
SURE: Law = ((-0.4, 1.0),)


def _e(values: list[float], drop: float = 0.0) -> float:
    return float(np.exp(log_e_values(np.array(values)[:, None], drop))[0])


def _above(values: list[float], drop: float) -> float:
    return float(np.exp(log_e_values_above(np.array(values)[:, None], drop))[0])


def _expected(laws: list[Law], e_value: object) -> float:
    outcomes = product(*laws)
    return sum(
        float(np.prod([chance for _, chance in outcome])) * e_value([value for value, _ in outcome])  # type: ignore[operator]
        for outcome in outcomes
    )


@pytest.mark.parametrize(
    "laws", [[FAIR] * 6, [RARE] * 8, [RISING, FALLING] * 3, [FAIR, RARE, RISING, FALLING, RARE, FAIR]]
)
def test_the_expected_value_is_at_most_1_if_the_mean_is_not_below_0(laws: list[Law]) -> None:
    assert 0.2 < _expected(laws, _e) <= 1 + 1e-12


def test_the_expected_value_is_at_most_1_at_the_drop_that_is_allowed() -> None:
    assert _expected([SURE, FALLING, FAIR, RARE], lambda values: _e(values, 0.225)) <= 1 + 1e-12
    for drop in (0.225, 0.0):
        laws = [SURE, FALLING, FAIR, RARE] if drop else [FAIR, RARE] * 2
        assert _expected(laws, lambda values, drop=drop: _above(values, drop)) <= 1 + 1e-12
    assert _expected([RISING, FAIR, RARE, FAIR], lambda values: _above(values, -0.125)) <= 1 + 1e-12


def test_the_expected_value_is_above_1_if_the_mean_is_below_0() -> None:
    assert _expected([FALLING] * 8, _e) > 1.5
    assert _expected([SURE, FALLING, FAIR, RARE], _e) > 1


def test_rows_that_belong_together_are_not_independent_bets() -> None:
    """Ten copies of a fair row are one fair bet; taken for ten rows, they are evidence."""
    assert _expected([FAIR] * 3, lambda values: _e([values[0]] * 10 + [values[1]] * 10 + [values[2]])) > 5


def test_units_without_a_value_are_left_out() -> None:
    assert _e([-1.0, np.nan, -0.5], 0.25) == pytest.approx(_e([-1.0, -0.5], 0.25))
    assert _above([-1.0, np.nan, -0.5], 0.25) == pytest.approx(_above([-1.0, -0.5], 0.25))
    assert _e([np.nan] * 3) == pytest.approx(1.0)


@given(DIFFERENCES)
def test_the_order_of_rows_makes_no_difference(values: list[float]) -> None:
    for order in list(permutations(range(len(values))))[:20] if len(values) < 7 else [range(len(values))[::-1]]:
        assert _e([values[i] for i in order]) == pytest.approx(_e(values), rel=1e-9)


@given(DIFFERENCES, st.floats(0, 1), st.floats(0, 1))
def test_worse_rows_are_more_evidence_and_larger_drops_take_more(values: list[float], a: float, b: float) -> None:
    for place in range(len(values)):
        worse = [*values[:place], -1.0, *values[place + 1 :]]
        assert _e(worse) >= _e(values) * (1 - 1e-12)
    assert _e(values, max(a, b)) <= _e(values, min(a, b)) * (1 + 1e-12)
    assert _above(values, max(a, b)) >= _above(values, min(a, b)) * (1 - 1e-12)


@given(DIFFERENCES)
def test_the_e_value_is_the_mean_of_the_products_of_its_stakes(values: list[float]) -> None:
    stakes = [min(MOST_STAKED, part * (26 / len(values)) ** 0.5) for part in (2, 3.5, 6, 10)]
    money = [np.prod([1 - stake * value for value in values]) for stake in stakes]
    assert _e(values) == pytest.approx(float(np.mean(money)), rel=1e-9)


@given(DIFFERENCES, st.floats(0.01, 50))
def test_the_limits_of_a_drop_are_those_of_the_test(values: list[float], threshold: float) -> None:
    [low] = largest_drop(lambda drop: np.array([_e(values, float(drop[0])) >= threshold]), 1)
    assert (low > 0) == (_e(values, 2.0**-20) >= threshold)
    assert low == 0 or _e(values, float(low)) >= threshold * (1 - 1e-6)
    assert low > 1 - 1e-5 or _e(values, float(low) + 1e-5) < threshold * (1 + 1e-6)
    [high] = smallest_drop(lambda drop: np.array([_above(values, float(drop[0])) >= threshold]), 1)
    assert high == 1 or _above(values, float(high)) >= threshold * (1 - 1e-6)
    assert high < 1e-5 or _above(values, float(high) - 1e-5) < threshold * (1 + 1e-6)


@given(st.lists(st.tuples(st.floats(0, 1000), st.floats(0.1, 1)), min_size=1, max_size=6))
def test_closed_testing_takes_the_least_average_of_all_sets(tested: list[tuple[float, float]]) -> None:
    e_values, shares = np.array(tested).T
    shares = shares / shares.sum()
    sets = [list(s) for size in range(1, len(tested) + 1) for s in combinations(range(len(tested)), size)]
    average = {tuple(s): float(e_values[s] @ shares[s] / shares[s].sum()) for s in sets}
    least = [min(average[tuple(s)] for s in sets if place in s) for place in range(len(tested))]
    assert average_over_all_sets(e_values, shares) == pytest.approx(np.array(least), rel=1e-9, abs=1e-9)
