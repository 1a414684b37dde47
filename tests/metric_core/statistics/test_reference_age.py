"""Scores that are lower where references are older are named, and hardly ever others."""

import numpy as np
import pytest

from metric_core.statistics.reference_age import DatedScores, find_age_effects
from metric_core.statistics.resampling import Floats

ROWS, STALE = 300, 30
DATES = np.arange(float(ROWS))


def good(generator: np.random.Generator, stale: float = 0.0) -> Floats:
    """Return scores of 0 and 1, some of which are 0 because the reference is one of the oldest and no longer true."""
    scores = generator.random(ROWS) < 0.85
    scores &= ~((DATES < STALE) & (generator.random(ROWS) < stale))
    return scores.astype(np.float64)


def share_named(runs: int, metrics: int, stale: float = 0.0, rows_a_group: int = 1, *, changes: bool = False) -> float:
    """Return in how many of the runs a metric is named.

    Args:
        stale: Share of the oldest references that are no longer true.
        rows_a_group: Number of rows with the same score.
        changes: True for changes of the scores from a run that the stale references suit.
    """
    named = 0
    for seed in range(runs):
        generator = np.random.default_rng([seed, 17])
        groups = None if rows_a_group == 1 else [f"g{i // rows_a_group}" for i in range(ROWS)]
        scores = {}
        for metric in range(metrics):
            values = good(generator, stale) - (good(generator) if changes else 0.0)
            if groups is not None:
                values = np.repeat(good(generator)[: ROWS // rows_a_group], rows_a_group)
            scores[f"m{metric}"] = DatedScores(values, DATES, groups)
        named += bool(find_age_effects(scores))
    return named / runs


def test_stale_references_are_named() -> None:
    assert share_named(60, 1, stale=0.9) > 0.9
    assert share_named(60, 1, stale=0.9, changes=True) > 0.8


def test_too_few_rows_name_nothing() -> None:
    dates = np.arange(20.0)
    assert find_age_effects({"m": DatedScores((dates > 5).astype(np.float64), dates)}) == {}
    assert find_age_effects({}) == {}


def test_rows_of_one_date_name_nothing() -> None:
    assert find_age_effects({"m": DatedScores(good(np.random.default_rng(1)), np.zeros(ROWS))}) == {}


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("metrics", "rows_a_group", "changes"), [(1, 1, False), (4, 1, False), (1, 1, True), (4, 1, True), (1, 5, False)]
)
def test_one_of_100_runs_without_stale_references_names_one(metrics: int, rows_a_group: int, changes: bool) -> None:
    found = share_named(1000, metrics, rows_a_group=rows_a_group, changes=changes)
    assert found < 0.01 + 3 * np.sqrt(0.01 * 0.99 / 1000)
