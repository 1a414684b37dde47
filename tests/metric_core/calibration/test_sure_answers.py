"""Thresholds from labels: people seldom disagree with more answers than accepted, in worlds that are known."""

import numpy as np
import pytest

from metric_core.calibration.sure_answers import SureAnswers, SurePoint, least_labels, measure_sure_answers
from metric_core.statistics.resampling import Floats

VERDICTS, DRAWS = 1000, 400


def falling(sureness: Floats) -> Floats:
    """The share of wrong answers falls with sureness."""
    return 0.4 * (2 - 2 * sureness) ** 1.5


def oversure(sureness: Floats) -> Floats:
    """The surest answers are wrong most often."""
    return np.where(sureness > 0.9, 0.3, 0.02)


def constant(sureness: Floats) -> Floats:
    """Sureness says nothing, and a little more is wrong than accepted."""
    return np.full(len(sureness), 0.11)


@pytest.mark.simulation
@pytest.mark.parametrize("world", [falling, oversure, constant])
@pytest.mark.parametrize("labels", [100, 300])
def test_seldom_more_answers_are_wrong_than_accepted(world: object, labels: int) -> None:
    assert callable(world)
    generator = np.random.default_rng(7)
    exceeded = certified = 0
    for _ in range(DRAWS):
        sureness = 0.5 + 0.5 * np.sqrt(generator.random(VERDICTS))
        wrong = (generator.random(VERDICTS) < world(sureness)).astype(np.float64)
        wrong[generator.permutation(VERDICTS)[labels:]] = np.nan
        found = measure_sure_answers(sureness, wrong).choose(0.1)
        if found is not None:
            grid = np.linspace(2 * found.least - 1, 1, 4001) ** 2  # quantiles of the squared distance from the middle
            answered = 0.5 + 0.5 * np.sqrt(np.linspace(grid[0], 1, 4001))
            exceeded += float(world(answered).mean()) > 0.1
            certified += 1
    assert exceeded <= 0.05 * DRAWS + 3 * np.sqrt(0.05 * 0.95 * DRAWS)
    if world is falling:
        assert certified > 0.5 * DRAWS


def test_the_first_threshold_depends_on_the_number_of_labels_alone_and_the_first_that_fails_is_the_last() -> None:
    points = [
        SurePoint(0.9 - place / 10, share, 50, 1, limit)
        for place, (share, limit) in enumerate([(0.1, 0.5), (0.5, 0.08), (0.7, 0.09), (0.8, 0.12), (1.0, 0.05)])
    ]
    answers = SureAnswers(1000, 100, 100.0, tuple(points))
    found = answers.choose(0.1)
    assert found is not None
    assert found.share == 0.7
    assert SureAnswers(1000, 100, 60.0, tuple(points)).choose(0.1) is None  # as many labels of 60 groups
    assert least_labels(0.1) == 46


def test_labels_of_groups_say_less() -> None:
    sureness, wrong = np.full(100, 0.9), np.zeros(100)
    alone = measure_sure_answers(sureness, wrong)
    grouped = measure_sure_answers(sureness, wrong, [f"{number // 10}" for number in range(100)])
    assert (alone.units, grouped.units) == (100.0, 10.0)
    assert alone.points[0].limit == pytest.approx(1 - 0.05 ** (1 / 100))
    assert grouped.points[0].limit == pytest.approx(1 - 0.05 ** (1 / 10), abs=0.03)


def test_a_judge_without_probabilities_answers_nothing_and_more_labels_help_only_a_good_one() -> None:
    assert measure_sure_answers(np.zeros(200), np.zeros(200)).points == ()
    sureness = np.linspace(1, 0.5, 200)
    few = np.where(np.arange(200) % 10 == 0, (sureness < 0.7).astype(np.float64), np.nan)
    found = measure_sure_answers(sureness, few)
    assert found.choose(0.1) is None
    needed = found.labels_needed(0.1)
    assert needed is not None
    assert 40 < needed < 400
    assert measure_sure_answers(sureness, np.where(np.isnan(few), np.nan, 1.0)).labels_needed(0.1) is None


def test_labels_of_the_surest_verdicts_let_a_judge_answer_more() -> None:
    sureness = np.linspace(1.0, 0.5, 1000)
    drawn = np.random.default_rng(4)
    shares = []
    for least, count in ((0.0, 1000), (0.75, 500)):
        wrong = np.full(1000, np.nan)
        wrong[drawn.choice(count, 100, replace=False)] = 0.0
        found = measure_sure_answers(sureness, wrong, None, 0.05, least)
        assert found.covered == pytest.approx(count / 1000, abs=0.001)
        assert found.labels == 100
        assert all(point.least >= least for point in found.points)
        shares.append(min(point.share for point in found.points if point.share * 100 >= 46 * found.covered))
    assert shares == pytest.approx([0.5, 0.25])
