"""Means over many rows: their bootstrap distribution is drawn another way, and says the same."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from metric_core.statistics import resampling
from metric_core.statistics.resampling import Interval, Units, bootstrap_mean

COUNT = resampling._MANY_UNITS
WORLDS: dict[str, Callable[[np.random.Generator], NDArray[np.float64]]] = {
    "few values": lambda chance: np.round(chance.random(COUNT) * 6) / 6,
    "seldom": lambda chance: (chance.random(COUNT) < 0.001).astype(np.float64),
    "a value each": lambda chance: chance.random(COUNT),
    "a value each, skewed": lambda chance: chance.random(COUNT) ** 12,
}


def drawn_one_by_one(units: Units, patch: pytest.MonkeyPatch) -> Interval:
    with patch.context() as patched:
        patched.setattr(resampling, "_MANY_UNITS", COUNT + 1)
        return bootstrap_mean(units, seed=1, resamples=1999).interval()


@pytest.mark.parametrize("world", WORLDS)
def test_the_interval_is_that_of_units_drawn_one_by_one(world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    units = Units.from_values(WORLDS[world](np.random.default_rng(7)))
    expected = drawn_one_by_one(units, monkeypatch)
    found = bootstrap_mean(units, seed=1).interval()
    width = expected.high - expected.low
    assert found.low == pytest.approx(expected.low, abs=0.08 * width)
    assert found.high == pytest.approx(expected.high, abs=0.08 * width)


def test_groups_are_drawn_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(7)
    groups = [str(number // 3) for number in range(3 * COUNT)]
    level = np.repeat(chance.random(COUNT), 3)
    units = Units.from_values(level + 0.1 * chance.random(3 * COUNT), groups)
    expected = drawn_one_by_one(units, monkeypatch)
    found = bootstrap_mean(units, seed=1).interval()
    width = expected.high - expected.low
    assert found.low == pytest.approx(expected.low, abs=0.08 * width)
    assert found.high == pytest.approx(expected.high, abs=0.08 * width)


def test_it_is_the_same_at_every_call() -> None:
    units = Units.from_values(WORLDS["few values"](np.random.default_rng(7)))
    assert bootstrap_mean(units, seed=1).interval() == bootstrap_mean(units, seed=1).interval()
