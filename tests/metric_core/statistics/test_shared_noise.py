"""Noise that all rows of a run share, estimated from the changes from run to run."""

import numpy as np
import pytest

from metric_core.statistics.resampling import Floats
from metric_core.statistics.shared_noise import LEAST_STEPS, estimate_shared_noise

ERROR = 0.01
"""Standard error of a change of the mean over rows."""


def _steps(shared: float, runs: int, seed: int, drops: Floats | None = None) -> list[tuple[float, float]]:
    generator = np.random.default_rng(seed)
    of_rows, of_run = generator.normal(0, ERROR / np.sqrt(2), runs), generator.normal(0, shared, runs)
    means = of_rows + of_run - (0.0 if drops is None else drops)
    return [(float(change), ERROR) for change in np.diff(means)]


@pytest.mark.parametrize(("shared", "runs"), [(0.0155, 60), (0.008, 365), (0.03, 30)])
def test_the_noise_is_found_in_the_history(shared: float, runs: int) -> None:
    found = [estimate_shared_noise(_steps(shared, runs, seed)) for seed in range(40)]
    assert np.median(found) == pytest.approx(shared, rel=0.15)


def test_independent_rows_share_none() -> None:
    found = np.array([estimate_shared_noise(_steps(0.0, 100, seed)) for seed in range(200)])
    assert (found > 0).mean() < 0.15
    assert found.mean() < ERROR / 20


def test_drops_and_repairs_are_no_noise() -> None:
    drops = np.zeros(100)
    drops[30:60] = drops[80:] = 0.2
    assert max(estimate_shared_noise(_steps(0.0, 100, seed, drops)) for seed in range(20)) < ERROR
    slow = np.linspace(0, 0.2, 100)
    assert max(estimate_shared_noise(_steps(0.0, 100, seed, slow)) for seed in range(20)) < ERROR


def test_few_changes_or_none_say_nothing() -> None:
    assert estimate_shared_noise([(0.1, 0.001)] * (LEAST_STEPS - 1)) == 0
    assert estimate_shared_noise([(0.1, 0.001)] * LEAST_STEPS) > 0.05
    assert estimate_shared_noise([(0.1, 0.0)] * 50) == 0
    assert estimate_shared_noise([]) == 0
