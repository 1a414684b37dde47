"""Intervals of means over few units, skewed as they come, at levels as high as a gate may ask for."""

from itertools import product

import numpy as np

from metric_core.statistics.resampling import Units, bootstrap_mean


def test_an_interval_holds_its_mean_and_grows_with_the_level() -> None:
    for count, outlier in list(product((2, 3, 4, 8), (0.0, 1.0))):
        distribution = bootstrap_mean(Units.from_values(np.array([1 - outlier] * (count - 1) + [outlier])), seed=1)
        low, high = distribution.mean, distribution.mean
        for level in (0.9, 0.95, 0.998, 0.9998):
            interval = distribution.interval(level)
            assert interval.low <= low <= high <= interval.high, level
            low, high = interval.low, interval.high
