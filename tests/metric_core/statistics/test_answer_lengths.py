"""A difference that the lengths of the answers may explain is told from one that they cannot."""

import numpy as np
import pytest

from metric_core.statistics.answer_lengths import find_length_effect
from metric_core.statistics.resampling import Floats

ROWS, RUNS = 300, 100


def share_of_warnings(longer: float, slope: float, drop: float) -> float:
    """Return in how many of the runs with a lower mean the lengths may explain it.

    Args:
        longer: Length of the answers of the second run, relative to the first.
        slope: By how much the judge errs more on an answer of e times the length.
        drop: Share of the rows whose answers are worse in the second run.
    """
    generator = np.random.default_rng(11)
    warned = []
    for _ in range(RUNS):
        usual = generator.lognormal(4.5, 0.5, ROWS)
        lengths = tuple(times * usual * generator.lognormal(0, 0.2, ROWS) for times in (1.0, longer))
        good = generator.random(ROWS) < 0.85
        quality = (good, good & (generator.random(ROWS) >= drop))

        def judge(is_good: np.ndarray, length: Floats) -> Floats:
            errs = generator.random(ROWS) < np.clip(0.05 + slope * np.log(length / 90), 0, 0.9)
            return np.where(errs, 0.0, is_good.astype(np.float64))

        scores = (judge(quality[0], lengths[0]), judge(quality[1], lengths[1]))
        if scores[1].mean() < scores[0].mean() - 0.04:
            warned.append(find_length_effect(scores, (lengths[0], lengths[1])) is not None)
    return float(np.mean(warned)) if warned else 0.0


@pytest.mark.parametrize(
    ("longer", "slope", "drop", "least", "most"),
    [
        pytest.param(1.5, 0.3, 0.0, 0.9, 1.0, id="a judge that errs on long answers"),
        pytest.param(1.5, 0.0, 0.1, 0.0, 0.02, id="a fair judge, longer and worse answers"),
        pytest.param(1.0, 0.3, 0.1, 0.0, 0.02, id="worse answers of the same length"),
    ],
)
def test_lengths_are_blamed_where_they_may_be_the_cause(
    longer: float, slope: float, drop: float, least: float, most: float
) -> None:
    assert least <= share_of_warnings(longer, slope, drop) <= most


def test_a_difference_against_the_lengths_is_not_theirs() -> None:
    generator = np.random.default_rng(1)
    short = generator.normal(100, 20, ROWS)
    scores = (1 - short / 400, 1.2 - 1.5 * short / 400)
    assert find_length_effect(scores, (short, 1.5 * short)) is None


def test_few_rows_and_groups_are_not_tested_as_many() -> None:
    short = np.linspace(50, 150, 40)
    scores = (1 - short / 400, 1 - 1.5 * short / 400)
    assert find_length_effect(scores, (short, 1.5 * short)) is not None
    assert find_length_effect((scores[0][:20], scores[1][:20]), (short[:20], 1.5 * short[:20])) is None
    assert find_length_effect(scores, (short, 1.5 * short), ["one", "two"] * 20) is None


def test_the_explained_part_counts_rows_by_their_weight() -> None:
    short = np.linspace(50, 150, 60)
    scores, lengths = (1 - short / 400, 1 - 1.5 * short / 400), (short, 1.5 * short)
    plain, weighted = (find_length_effect(scores, lengths, weights=each) for each in (None, short))
    assert plain is not None
    assert weighted is not None
    assert weighted.explained == pytest.approx(plain.explained * np.average(short, weights=short) / short.mean())
