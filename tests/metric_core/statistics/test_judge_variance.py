"""The parts of the variance of a mean, in worlds where they are known."""

import numpy as np
import pytest

from metric_core.statistics.bounded_means import Bounds
from metric_core.statistics.judge_variance import estimate_judge_variance, split_variance
from metric_core.statistics.resampling import Floats

SCORE = Bounds(0.0, 1.0)


def pairs(first: Floats, again: Floats) -> dict[str, list[float]]:
    return {str(row): [before, after] for row, (before, after) in enumerate(zip(first, again, strict=True))}


def test_the_judges_share_is_unbiased_and_its_interval_holds_it() -> None:
    """Three of ten rows have a coin as judge, the others are good: 0.075 of a variance of 0.1275 is the judge's."""
    found = []
    for seed in range(200):
        generator = np.random.default_rng(seed)
        good = np.where(generator.random(300) < 0.3, 0.5, 1.0)
        first, again = (generator.binomial(1, good).astype(np.float64) for _ in range(2))
        judge = estimate_judge_variance([pairs(first[:50], again[:50])], SCORE)
        assert judge is not None
        shares = split_variance(first, judge)
        assert shares is not None
        found.append(shares)
    true = 0.075 / 0.1275
    ends = [each.judge_interval for each in found if each.judge_interval is not None]
    assert float(np.mean([each.judge for each in found])) == pytest.approx(true, abs=0.03)
    assert sum(end.low <= true <= end.high for end in ends) >= 0.91 * len(found)


def test_answers_to_the_same_question_have_a_part() -> None:
    generator = np.random.default_rng(3)
    questions = np.repeat(generator.normal(0, 0.2, 2000), 3)
    answers = questions + generator.normal(0, 0.1, 6000)
    first, again = (answers + generator.normal(0, 0.05, 6000) for _ in range(2))
    judge = estimate_judge_variance([pairs(first, again)], None)
    assert judge is not None
    assert judge.judge == pytest.approx(0.05**2, rel=0.1)
    shares = split_variance(first, judge, [str(row // 3) for row in range(6000)])
    assert shares is not None
    whole = 3 * 0.2**2 + 0.1**2 + 0.05**2
    assert (shares.rows, shares.answers, shares.judge) == pytest.approx(
        (3 * 0.2**2 / whole, 0.1**2 / whole, 0.05**2 / whole), rel=0.1
    )


def test_a_shift_of_whole_runs_is_found_and_noise_alone_is_not() -> None:
    generator = np.random.default_rng(5)
    rows = generator.random(200)

    def judged(shift: float) -> Floats:
        return rows + shift + generator.normal(0, 0.05, 200)

    first = judged(0.0)
    quiet = estimate_judge_variance([pairs(first, judged(0.0)) for _ in range(8)], None)
    shifted = estimate_judge_variance([pairs(first, judged(generator.normal(0, 0.1))) for _ in range(8)], None)
    assert quiet is not None
    assert shifted is not None
    assert quiet.run == 0.0
    assert 0.02**2 < shifted.run < 0.2**2
    assert shifted.judge == pytest.approx(0.05**2, rel=0.15)


def test_few_rows_tell_nothing() -> None:
    assert estimate_judge_variance([pairs(np.ones(4), np.zeros(4))], SCORE) is None
