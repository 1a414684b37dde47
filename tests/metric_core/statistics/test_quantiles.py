"""Limits of quantiles: those of the binomial distribution for independent rows, and they hold for groups, too."""

from math import inf

import numpy as np
import pytest
from scipy.stats import binom

from metric_core.statistics.quantiles import estimate_quantile

LEVEL = 0.975


@pytest.mark.parametrize("count", [60, 100, 333])
@pytest.mark.parametrize("share", [0.5, 0.95])
def test_limits_of_independent_rows_are_order_statistics(count: int, share: float) -> None:
    found = estimate_quantile(np.random.default_rng(1).permutation(np.arange(1.0, count + 1)), share, LEVEL)
    places = np.arange(count + 1)
    # The k-th value is above the quantile if fewer than k rows are below it.
    high = next((k for k in places[1:] if binom.cdf(k - 1, count, share) >= LEVEL), None)
    low = next((k for k in places[::-1] if k and binom.sf(k - 1, count, share) >= LEVEL), None)
    assert (found.low, found.high) == (low, high)
    assert found.value == np.ceil(share * count)


def test_weights_and_groups_count() -> None:
    values = np.arange(1.0, 101.0)
    assert estimate_quantile(values, 0.5, LEVEL, weights=np.where(values > 50, 3.0, 1.0)).value == 67
    alone = estimate_quantile(values, 0.95, LEVEL)
    groups = [str(int(value) // 10) for value in values]
    grouped = estimate_quantile(values, 0.95, LEVEL, groups)
    assert grouped.low is not None
    assert alone.low is not None
    assert grouped.low < alone.low
    few = estimate_quantile(values, 0.5, LEVEL, ["a"] * 50 + ["b"] * 50)
    assert (few.value, few.low, few.high) == (50, None, None)


@pytest.mark.simulation
@pytest.mark.parametrize("size", [1, 5])
def test_intervals_of_the_95th_percentile_hold(size: int) -> None:
    generator = np.random.default_rng(7)
    true = float(np.exp(1.6448536 * np.hypot(0.5, 0.4)))
    held = 0
    for _ in range(200):
        usual = np.repeat(generator.normal(0, 0.5, 200 // size), size)
        values = np.exp(usual + generator.normal(0, 0.4, 200))
        found = estimate_quantile(values, 0.95, LEVEL, None if size == 1 else [str(row // size) for row in range(200)])
        held += (found.low or 0.0) <= true <= (found.high or inf)
    assert held >= 186
