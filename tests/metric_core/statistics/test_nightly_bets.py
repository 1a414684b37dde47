"""P-values over many nights of new rows: they are found soon, and hardly ever by chance in all nights together."""

from collections.abc import Sequence

import numpy as np
import pytest

from metric_core.statistics.bounded_means import Bounds
from metric_core.statistics.nightly_bets import Night, p_of_nights

ROWS, BAR = 200, 0.9
UNIT = Bounds(0.0, 1.0)


def draw(means: Sequence[float], seed: int) -> list[Night]:
    """Return nights of rows of 0 and 1 with these true means."""
    shares = np.random.default_rng(seed).binomial(ROWS, means) / ROWS
    return [Night(ROWS, float(share), float(np.sqrt(share * (1 - share) * ROWS / (ROWS - 1)))) for share in shares]


def test_a_drop_is_found_within_five_nights() -> None:
    found = [p_of_nights(draw([0.85] * 5, seed), BAR, UNIT, 0.05) <= 0.05 for seed in range(100)]
    assert np.mean(found) > 0.88


def test_a_drop_after_many_good_nights_is_found_as_well() -> None:
    found = [p_of_nights(draw([0.95] * 60 + [0.85] * 8, seed), BAR, UNIT, 0.05) <= 0.05 for seed in range(50)]
    assert np.mean(found) > 0.9


def test_sixty_nights_at_the_threshold_hardly_ever_fail() -> None:
    years = [draw([BAR] * 60, seed) for seed in range(50)]
    failed = [any(p_of_nights(nights[:last], BAR, UNIT, 0.05) <= 0.05 for last in range(1, 61)) for nights in years]
    assert np.mean(failed) <= 0.06


@pytest.mark.parametrize("nights", [[], [Night(0, 0.0, 0.0)], [Night(ROWS, 1.0, 0.0)] * 30])
def test_nights_that_meet_the_threshold_are_no_evidence(nights: list[Night]) -> None:
    assert p_of_nights(nights, BAR, UNIT, 0.05) >= 0.5


def test_a_limit_from_above_is_the_mirror_image() -> None:
    nights = draw([0.85] * 5, 1)
    mirrored = [Night(night.rows, 1 - night.mean, night.deviation) for night in nights]
    assert p_of_nights(nights, BAR, UNIT, 0.05) == pytest.approx(
        p_of_nights(mirrored, 1 - BAR, UNIT, 0.05, is_floor=False)
    )


def test_the_worst_possible_nights_have_a_p_value() -> None:
    assert p_of_nights([Night(100_000, 0.0, 0.0)] * 50, BAR, UNIT, 0.05) < 1e-100
