"""The tests on pairs, against hand values and against the functions that they are known by."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest, norm, permutation_test

from metric_core.statistics.paired_tests import TestKind, holm, mcnemar_mid_p, paired_test
from metric_core.statistics.pairs import Pairs
from metric_core.statistics.resampling import Floats


def pairs_of(a: Floats, b: Floats, groups: list[str] | None = None) -> Pairs:
    return Pairs(None, tuple(f"{i:03}" for i in range(len(a))), a, b, groups)


def test_holm_against_hand_values() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


def test_mcnemar_is_the_binomial_test_of_the_rows_that_changed_less_half_of_the_observed_probability() -> None:
    a = np.array([1.0] * 9 + [0.0] * 2 + [1.0] * 30)
    b = np.array([0.0] * 9 + [1.0] * 2 + [1.0] * 30)
    found = paired_test(pairs_of(a, b), seed=1)
    assert found.kind is TestKind.MCNEMAR
    # Of 11 rows that changed at most 2 went one way: 2 * (1 + 11 + 55) / 2**11, of which 55 / 2**11 twice by halves.
    assert found.p == pytest.approx((2 * (1 + 11) + 55) / 2**11)
    assert found.p == pytest.approx(binomtest(2, 11).pvalue - binom.pmf(2, 11, 0.5))


def test_mid_p_of_equal_and_of_no_changes_is_1() -> None:
    assert [mcnemar_mid_p(n, n) for n in (0, 1, 7)] == [1.0, 1.0, pytest.approx(1.0)]


@pytest.mark.parametrize("count", [8, 13])
def test_few_differences_get_every_combination_of_signs(count: int) -> None:
    b = np.random.default_rng(1).normal(0.1, 0.3, size=count)
    expected = permutation_test((b,), np.sum, permutation_type="samples", n_resamples=np.inf, vectorized=True).pvalue
    assert paired_test(pairs_of(np.zeros(count), b), seed=1).p == pytest.approx(expected)


def test_many_differences_get_random_signs() -> None:
    b = np.random.default_rng(1).normal(0.04, 0.3, size=200)
    found = paired_test(pairs_of(np.zeros(200), b), seed=1)
    assert found.kind is TestKind.PERMUTATION
    assert found.p == pytest.approx(2 * norm.sf(abs(b.sum()) / np.sqrt((b**2).sum())), abs=0.02)


def test_a_shift_without_a_change_of_the_mean_is_no_difference() -> None:
    """Most rows rise a little, few fall a lot: tests of ranks would find a difference of the means where none is."""
    b = np.array([0.04] * 170 + [-0.04 * 170 / 30] * 30)
    assert paired_test(pairs_of(np.zeros(200), b), seed=1).p > 0.9


def test_few_differing_rows_get_the_exact_permutation_of_their_signs() -> None:
    a = np.zeros(20)
    b = np.array([0.5, 0.25, 0.25, 0.5, 0.75] + [0.0] * 15)
    found = paired_test(pairs_of(a, b), seed=1)
    # Of the 32 signs of five differences, two give a sum as extreme as all of one sign.
    assert found.kind is TestKind.PERMUTATION
    assert found.p == pytest.approx(2 / 32)


def test_one_group_counts_once_however_many_rows_it_has() -> None:
    a, b = np.zeros(12), np.full(12, 0.5)
    found = paired_test(pairs_of(a, b, ["x", "y", "z"] * 4), seed=1)
    assert found.kind is TestKind.GROUP_PERMUTATION
    assert found.p == pytest.approx(2 / 8)


@pytest.mark.parametrize("groups", [None, ["x", "x", "y", "y"]])
@pytest.mark.parametrize("values", [[0.5, 0.5, 0.25, 1.0], [0.0, 1.0, 1.0, 0.0]])
def test_equal_runs_have_a_p_value_of_1(values: list[float], groups: list[str] | None) -> None:
    assert paired_test(pairs_of(np.array(values), np.array(values), groups), seed=1).p == 1.0


def test_one_differing_row_says_nothing() -> None:
    a, b = np.full(40, 0.5), np.full(40, 0.5)
    b[3] = 0.9
    assert paired_test(pairs_of(a, b), seed=1).p == 1.0


def test_rounding_is_no_difference() -> None:
    a, b = np.full(60, 0.3), np.full(60, 0.1 + 0.2)
    assert paired_test(pairs_of(a, b), seed=1).p == 1.0


def test_the_normal_limit_for_many_groups_is_close_to_the_permutation() -> None:
    generator = np.random.default_rng(2)
    a = np.zeros(1900)
    b = generator.normal(0.012, 0.3, size=1900)
    groups = [f"{i:04}" for i in range(1900)]
    limit = paired_test(pairs_of(a, b, groups), seed=1).p
    half = paired_test(pairs_of(a[:950], b[:950], groups[:950]), seed=1)
    z = abs(b[:950].sum()) / np.sqrt((b[:950] ** 2).sum())
    assert half.p == pytest.approx(2 * (1 - _normal(z)), abs=0.02)
    assert 0.0 < limit < 1.0


def _normal(z: float) -> float:
    from math import erf, sqrt

    return (1 + erf(z / sqrt(2))) / 2
