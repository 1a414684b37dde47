"""Numbers of rows that are enough: they are, in about 80 of 100 simulated runs."""

import numpy as np
import pytest

from metric_core.gates.rules import Threshold
from metric_core.gates.thresholds import Confidence, RandomStream, check_mean
from metric_core.statistics.bounded_means import BoundedMean, Bounds
from metric_core.statistics.paired_tests import mcnemar_mid_p
from metric_core.statistics.resampling import Units
from metric_core.statistics.sample_size import (
    MOST_ROWS,
    Moments,
    detectable_difference,
    rows_for_difference,
    rows_to_decide,
)

RUNS = 100
DIFFERENCES = Bounds(-1.0, 1.0)


def test_a_gate_of_as_many_rows_passes_in_about_80_of_100_runs() -> None:
    needed = rows_for_difference(Moments(0.0, 0.04, 0.0), 0.1, DIFFERENCES).to_pass
    assert needed is not None
    generator = np.random.default_rng(1)
    passed = 0
    for seed in range(RUNS):
        units = Units.from_values(generator.normal(0.0, 0.2, needed))
        found = check_mean(units, Threshold(0.1, is_floor=False), Confidence(0.95), DIFFERENCES, RandomStream(seed))
        passed += found.p_violated <= 0.05
    assert 0.68 <= passed / RUNS <= 0.92


def test_a_difference_is_seen_in_about_80_of_100_runs_of_as_many_rows() -> None:
    needed = rows_for_difference(Moments(0.0, 0.04, 0.0), 0.1, DIFFERENCES).to_see
    assert needed is not None
    generator = np.random.default_rng(2)
    draws = [Units.from_values(generator.normal(0.1, 0.2, needed)) for _ in range(RUNS)]
    seen = sum(BoundedMean(units, DIFFERENCES, seed, draws=999).interval().low > 0 for seed, units in enumerate(draws))
    assert 0.68 <= seen / RUNS <= 0.92


@pytest.mark.parametrize("tests", [1, 11])
def test_a_detectable_drop_is_found_in_about_80_of_100_comparisons(tests: int) -> None:
    generator, rows = np.random.default_rng(3), 300
    noise = np.repeat([-1.0, 0.0, 1.0], [15, 270, 15])
    drop = detectable_difference(
        Moments.of_differences(Units.from_values(noise), noise, DIFFERENCES), rows, DIFFERENCES, tests
    )
    assert drop is not None
    found = 0
    for _ in range(400):
        changes = generator.choice([-1.0, 0.0, 1.0], rows, p=[0.05 + drop, 0.9 - drop, 0.05])
        found += mcnemar_mid_p(int((changes > 0).sum()), int((changes < 0).sum())) * tests <= 0.05
    assert 0.74 <= found / 400 <= 0.86  # without the rows that a drop changes, 41 to 59 %


def test_more_metrics_and_fewer_rows_hide_larger_differences() -> None:
    alike = np.zeros(100)
    moments = Moments.of_differences(Units.from_values(alike), alike, DIFFERENCES)
    few, many = (detectable_difference(moments, 100, DIFFERENCES, tests) for tests in (1, 11))
    assert few is not None
    assert many is not None
    assert 0.05 < few < many < 0.2
    assert detectable_difference(moments, 5, DIFFERENCES, 11) is None


def test_groups_count_as_groups() -> None:
    values = np.repeat([0.4, 0.9, 0.7, 0.8, 0.5, 1.0], 5)
    alone = rows_to_decide(Moments.from_units(Units.from_values(values)), 0.6, Bounds(0.0, 1.0), 0.95)
    groups = [f"group {i // 5}" for i in range(30)]
    grouped = rows_to_decide(Moments.from_units(Units.from_values(values, groups)), 0.6, Bounds(0.0, 1.0), 0.95)
    assert alone is not None
    assert grouped is not None
    assert grouped > 3 * alone


def test_a_hopeless_number_is_none() -> None:
    assert rows_to_decide(Moments(0.5, 0.25, 0.0), 0.5, Bounds(0.0, 1.0), 0.95) is None
    assert rows_to_decide(Moments(0.5, 0.25, 0.0), 0.50001, Bounds(0.0, 1.0), 0.95) is None
    assert MOST_ROWS == 10_000_000
