"""A mean score corrected by labelled rows: in worlds whose truth is known, and where nothing can be said."""

import numpy as np
import pytest

from metric_core.calibration.beta_means import BetaMean
from metric_core.calibration.judge_error import (
    JudgeErrorFit,
    correct_difference,
    correct_mean,
    describe_outside,
    estimate_judge_error,
)
from metric_core.statistics.resampling import Floats, Interval, Units

LABELLED, RUN, RUNS = 120, 300, 600


def draw(generator: np.random.Generator, count: int, share: float) -> tuple[Floats, Floats]:
    """Rows of which people call a share good, and a judge who is lenient and errs: its scores go from 0 to 1."""
    labels = (generator.random(count) < share).astype(np.float64)
    scores = np.where(labels > 0, generator.beta(8, 2, count), generator.beta(3, 3, count))
    return labels, scores


@pytest.mark.simulation
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_the_interval_holds_the_truth_though_the_run_is_better_or_worse_than_the_labelled_rows(share: float) -> None:
    generator = np.random.default_rng(11)
    held = plain = 0
    for _ in range(RUNS):
        error = estimate_judge_error(*draw(generator, LABELLED, 0.6), (0.0, 1.0))
        assert error is not None
        scores = draw(generator, RUN, share)[1]
        interval = correct_mean(error, Units.from_values(scores)).interval()
        held += interval.low <= share <= interval.high
        plain += abs(scores.mean() - share) <= 1.96 * scores.std(ddof=1) / np.sqrt(RUN)
    assert 0.925 <= held / RUNS <= 0.98
    assert plain / RUNS < 0.7  # the plain mean is of the judge, not of people


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("judge", "count", "labelled", "share"),
    [((0.95, 0.8), 100, 0.95, 0.7), ((0.98, 0.95), 20, 0.6, 0.95), ((0.98, 0.95), 50, 0.9, 0.7)],
)
def test_few_or_one_sided_labels_and_a_very_good_judge_leave_an_interval_that_holds(
    judge: tuple[float, float], count: int, labelled: float, share: float
) -> None:
    """A judge that is right on all labels of a class has errors nonetheless; a jackknife gives it none (77 to 89 %)."""
    generator = np.random.default_rng(4)

    def said(rows: int, good: float) -> tuple[Floats, Floats]:
        labels = (generator.random(rows) < good).astype(np.float64)
        right = np.where(labels > 0, generator.random(rows) < judge[0], generator.random(rows) < judge[1])
        return labels, np.where(right, labels, 1 - labels)

    held = passed = made = 0
    for _ in range(150):
        error = estimate_judge_error(*said(count, labelled), bounds=(0.0, 1.0))
        if error is None:
            continue
        made += 1
        estimate = correct_mean(error, Units.from_values(said(RUN, share)[1]))
        interval = estimate.interval()
        held += interval.low <= share <= interval.high
        passed += estimate.strict_limits(0.05).low > share
    assert made > 144 * (1 if labelled < 0.95 else 0.9)
    assert held / made >= 0.93
    assert passed / made <= 0.05


def test_groups_with_good_and_bad_rows_correlate_the_two_means() -> None:
    generator = np.random.default_rng(9)
    labels = np.tile([0.0, 1.0], 60)
    lenience = np.repeat(generator.normal(0, 0.15, 60), 2)
    scores = np.clip(0.3 + 0.4 * labels + lenience, 0, 1)
    groups = [str(number) for number in np.repeat(np.arange(60), 2)]
    together, apart = (estimate_judge_error(labels, scores, (0.0, 1.0), names) for names in (groups, None))
    assert together is not None
    assert apart is not None
    assert (apart.correlation, together.correlation > 0.5) == (0.0, True)
    assert together.gain_error < apart.gain_error / 1.4


def test_rows_that_belong_together_make_the_interval_wider() -> None:
    generator = np.random.default_rng(3)
    labels, scores = draw(generator, 40, 0.5)
    labels6, scores6 = np.tile(labels, 6), np.tile(scores, 6)
    alone, taken_for_new = (estimate_judge_error(*of, (0.0, 1.0)) for of in ((labels, scores), (labels6, scores6)))
    repeated = estimate_judge_error(labels6, scores6, (0.0, 1.0), [str(i) for i in range(40)] * 6)
    assert alone is not None
    assert repeated is not None
    assert taken_for_new is not None
    assert repeated.gain_error == pytest.approx(alone.gain_error)
    assert taken_for_new.gain_error < alone.gain_error / 2


@pytest.mark.parametrize(
    ("labels", "scores"),
    [
        ([], []),
        ([0, 1, 1], [0.1, 0.9, 0.8]),
        ([1, 1, 1, 1, 1], [0.1, 0.9, 0.8, 0.7, 0.9]),
    ],
    ids=["no rows", "few rows", "one label"],
)
def test_nothing_is_fitted_to_rows_that_cannot_bear_it(labels: list[float], scores: list[float]) -> None:
    assert estimate_judge_error(np.array(labels, dtype=np.float64), np.array(scores), (0.0, 1.0)) is None


@pytest.mark.parametrize("gain", [0.0, -0.4, 0.05])
def test_a_judge_that_cannot_tell_good_from_bad_says_nothing(gain: float) -> None:
    good = BetaMean(60 * (0.5 + gain), 60 * (0.5 - gain))
    error = JudgeErrorFit(0.5, 0.5 + gain, BetaMean(30, 30), good)
    found = correct_mean(error, Units.from_values(np.array([0.4, 0.6, 0.5])))
    assert found.value is None
    assert found.interval() == Interval(0.0, 1.0)


def test_mean_above_the_judge_s_mean_of_good_rows_is_corrected_to_one() -> None:
    error = JudgeErrorFit(0.2, 0.8, BetaMean(200, 800), BetaMean(800, 200))
    found = correct_mean(error, Units.from_values(np.array([0.95, 0.97])))
    assert found.value == 1.0
    assert found.interval().high == 1.0


@pytest.mark.simulation
def test_a_judge_grown_lenient_never_gives_a_point_and_rarely_passes_a_gate() -> None:
    """It calls 97 instead of 90 of 100 good rows good; a limit of three standard errors passes 43 %."""
    generator = np.random.default_rng(41)

    def said(count: int, share: float, sensitivity: float) -> tuple[Floats, Floats]:
        labels = (generator.random(count) < share).astype(np.float64)
        return labels, (generator.random(count) < np.where(labels > 0, sensitivity, 0.2)).astype(np.float64)

    made, passed, refused = 0, {0.9: 0, 0.97: 0}, {0.9: 0, 0.97: 0}
    for _ in range(150):
        error = estimate_judge_error(*said(50, 0.7, 0.9), bounds=(0.0, 1.0))
        if error is None:
            continue
        made += 1
        for sensitivity in passed:
            scores = Units.from_values(said(1000, 0.97, sensitivity)[1])
            if describe_outside(error, scores):
                refused[sensitivity] += 1
                continue
            estimate = correct_mean(error, scores)
            assert estimate.interval().low < estimate.interval().high
            passed[sensitivity] += estimate.strict_limits(0.05).low > 0.97
    assert passed[0.97] / made <= 0.08
    assert refused[0.9] / made <= 0.1


@pytest.mark.simulation
def test_the_interval_of_a_difference_holds_the_truth() -> None:
    generator = np.random.default_rng(5)
    held = 0
    for _ in range(RUNS):
        error = estimate_judge_error(*draw(generator, LABELLED, 0.6), (0.0, 1.0))
        assert error is not None
        before, after = draw(generator, RUN, 0.5)[1], draw(generator, RUN, 0.7)[1]
        interval = correct_difference(error, Units.from_values(after - before)).interval()
        held += interval.low <= 0.2 <= interval.high
    assert 0.925 <= held / RUNS <= 0.98


def test_rows_of_a_run_that_belong_together_make_the_interval_wider() -> None:
    error = JudgeErrorFit(0.2, 0.8, BetaMean(2000, 8000), BetaMean(8000, 2000))
    values = np.array([0.2, 0.8] * 20)
    alone = correct_mean(error, Units.from_values(values)).interval()
    together = correct_mean(
        error, Units.from_values(np.repeat(values, 5), [str(i) for i in range(40) for _ in range(5)])
    )
    assert together.interval().high - together.interval().low == pytest.approx(alone.high - alone.low)


def test_a_row_of_weight_two_counts_like_two_rows_of_a_group() -> None:
    labels, scores = np.array([0, 0, 0, 1, 1, 1, 1.0]), np.array([0.1, 0.3, 0.2, 0.7, 0.9, 0.8, 1.0])
    weights = np.array([2, 1, 1, 1, 1, 2, 1.0])
    again = np.repeat(np.arange(7), weights.astype(int))
    names = [str(row) for row in range(7)]
    once = estimate_judge_error(labels, scores, (0.0, 1.0), names, weights)
    twice = estimate_judge_error(labels[again], scores[again], (0.0, 1.0), [names[row] for row in again])
    assert once is not None
    assert twice is not None
    assert (once.bad, once.good, once.gain_error) == pytest.approx((twice.bad, twice.good, twice.gain_error))
