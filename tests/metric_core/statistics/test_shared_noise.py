"""Noise that all rows of a run share, estimated from the changes from run to run."""

import numpy as np
import pytest

from metric_core.statistics.resampling import Floats
from metric_core.statistics.shared_noise import ASSUMED_NOISE, limit_shared_noise

ERROR = 0.01
"""Standard error of a change of the mean over rows."""


def _steps(shared: float, runs: int, seed: int, drops: Floats | None = None) -> list[tuple[float, float]]:
    generator = np.random.default_rng(seed)
    of_rows, of_run = generator.normal(0, ERROR / np.sqrt(2), runs), generator.normal(0, shared, runs)
    means = of_rows + of_run - (0.0 if drops is None else drops)
    return [(float(change), ERROR) for change in np.diff(means)]


@pytest.mark.parametrize(("shared", "runs"), [(0.0155, 60), (0.008, 365), (0.03, 30), (0.01, 8)])
def test_the_limit_is_rarely_exceeded_and_not_far_above_the_noise(shared: float, runs: int) -> None:
    found = np.array([limit_shared_noise(_steps(shared, runs, seed)) for seed in range(200)])
    assert (found < shared).mean() < 0.2
    assert np.median(found) <= max(1.5 * shared, ASSUMED_NOISE)


def test_runs_refute_noise_the_more_they_are() -> None:
    found = [np.mean([limit_shared_noise(_steps(0.0, runs, seed)) for seed in range(50)]) for runs in (8, 30, 100, 365)]
    assert found == sorted(found, reverse=True)
    assert found[-1] < ERROR / 3


def test_drops_and_repairs_are_no_noise() -> None:
    drops = np.zeros(100)
    drops[30:60] = drops[80:] = 0.2
    assert max(limit_shared_noise(_steps(0.0, 100, seed, drops)) for seed in range(20)) < ERROR
    slow = np.linspace(0, 0.2, 100)
    assert max(limit_shared_noise(_steps(0.0, 100, seed, slow)) for seed in range(20)) < ERROR


def test_a_few_changes_refute_little_unless_nothing_changes() -> None:
    assert limit_shared_noise([]) == limit_shared_noise([(0.001, 0.0)]) == ASSUMED_NOISE
    assert limit_shared_noise([(0.0, 0.0)] * 3) == 0
    assert limit_shared_noise([(0.1, 0.001)] * 3) > 0.05
    assert limit_shared_noise([(0.4, 0.004)] * 3, size=4.0) == limit_shared_noise([(0.1, 0.001)] * 3)
