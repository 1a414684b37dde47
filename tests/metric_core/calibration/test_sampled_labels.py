"""Means of labels of a random sample: against other libraries, and in worlds whose truth is known."""

from dataclasses import replace

import numpy as np
import pytest

from metric_core.calibration.beta_means import BetaMean
from metric_core.calibration.estimates import SHARE, RectifiedEstimate
from metric_core.calibration.random_sample import p_random
from metric_core.calibration.sampled_labels import (
    SampledLabels,
    _rectified,
    estimate_label_difference,
    estimate_label_mean,
)
from metric_core.statistics.resampling import Floats, Interval, Units

ROWS = 600


def draw(
    generator: np.random.Generator, count: int, share: float = 0.7, sensitivity: float = 0.95
) -> tuple[SampledLabels, Floats]:
    """A run of which a sample is labelled, and the labels of all rows."""
    truth = (generator.random(ROWS) < share).astype(float)
    said = np.where(truth > 0, generator.random(ROWS) < sensitivity, generator.random(ROWS) > 0.8).astype(float)
    labels = np.full(ROWS, np.nan)
    labelled = generator.choice(ROWS, count, replace=False)
    labels[labelled] = truth[labelled]
    return SampledLabels([f"r{number}" for number in range(ROWS)], said, labels), truth


def covers(interval: Interval, truth: float) -> bool:
    return interval.low <= truth <= interval.high


@pytest.mark.simulation
@pytest.mark.parametrize("count", [20, 50, 100])
def test_the_interval_holds_the_truth_and_is_not_wider_than_that_of_the_labels_alone(count: int) -> None:
    generator = np.random.default_rng(2)
    held, width = 0, 0.0
    for _ in range(200):
        sample, _ = draw(generator, count, sensitivity=0.85)
        found = estimate_label_mean(sample)
        interval = found.estimate.interval()
        held += covers(interval, 0.7)
        width += interval.high - interval.low
    assert 0.92 <= held / 200 <= 0.995
    assert width / 200 < 2 * 1.05 * {20: 0.212, 50: 0.133, 100: 0.094}[count]  # Clopper and Pearson


@pytest.mark.simulation
@pytest.mark.parametrize(("sensitivity", "specificity", "half"), [(0.98, 0.95, 0.055), (1.0, 1.0, 0.042)])
def test_a_good_judge_narrows_the_interval(sensitivity: float, specificity: float, half: float) -> None:
    generator = np.random.default_rng(4)
    held, passed, widths = 0, 0, []
    rows = [f"r{number}" for number in range(1000)]
    for _ in range(200):
        truth = (generator.random(1000) < 0.7).astype(float)
        right = generator.random(1000) < np.where(truth > 0, sensitivity, specificity)
        labels = np.full(1000, np.nan)
        labels[:100] = truth[:100]
        found = estimate_label_mean(SampledLabels(rows, np.where(right, truth, 1 - truth), labels))
        interval = found.estimate.interval()
        held += covers(interval, 0.7)
        widths.append((interval.high - interval.low) / 2)
        passed += found.estimate.strict_limits(0.05).low > 0.7
        assert found.is_powered
    assert held / 200 >= 0.93
    assert np.mean(widths) < half  # 0.093 with labels alone
    assert passed <= 14


def test_labels_in_both_means_widen_the_interval() -> None:
    """A judge with low scores for good rows: where good rows are labelled, both means are too high."""
    truth = np.array([1.0, 0.0] * 50)
    found = [
        estimate_label_mean(
            SampledLabels(
                [str(n) for n in range(100)], 0.5 + slope * (truth - 0.5), np.append(truth[:45], [np.nan] * 55)
            )
        ).estimate
        for slope in (0.5, 1.0)
    ]
    assert isinstance(found[0], RectifiedEstimate)
    assert isinstance(found[1], RectifiedEstimate)
    assert found[0].correlation == pytest.approx(0.45**0.5, abs=0.01)
    assert found[1].correlation == 0
    apart = replace(found[0], correlation=0.0)
    assert found[0].limits(0.025).low < apart.limits(0.025).low


def test_labels_alone_have_the_limits_of_clopper_and_pearson() -> None:
    binomtest = pytest.importorskip("scipy.stats").binomtest
    labels = np.array([1.0] * 17 + [0.0] * 3 + [np.nan] * 80)
    sample = SampledLabels([str(n) for n in range(100)], np.resize([0.0, 1.0], 100), labels)
    found = estimate_label_mean(sample)
    expected = binomtest(17, 20).proportion_ci(0.95, method="exact")
    interval = found.estimate.interval()
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))
    assert not found.is_powered
    one_sided = binomtest(17, 20, 0.7, alternative="greater").pvalue
    assert found.estimate.p_at_most(0.7) == pytest.approx(one_sided, abs=1e-6)
    all_alike = estimate_label_mean(SampledLabels(["a", "b", "c", "d", "e"], np.ones(5), np.ones(5)))
    expected = binomtest(5, 5).proportion_ci(0.95, method="exact")
    assert (all_alike.estimate.interval().low, all_alike.estimate.interval().high) == pytest.approx((expected.low, 1))
    assert not all_alike.is_powered


def test_the_estimate_is_that_of_ppi_python() -> None:
    """Frozen result of `ppi_mean_pointestimate` of ppi-python 0.2.3.

    ppi-python averages the scores of unlabelled rows only: its weight 1 is 400 / 280 here.
    """
    generator = np.random.default_rng(17)
    truth = (generator.random(400) < 0.7).astype(float)
    scores = np.clip(truth * 0.6 + generator.random(400) * 0.4, 0, 1)
    labels = np.where(np.arange(400) < 120, truth, np.nan)
    plain = _rectified(SampledLabels([f"{n:03}" for n in range(400)], scores, labels), 400 / 280, 1, SHARE)
    assert plain is not None
    assert plain.value == pytest.approx(0.74593245, abs=1e-8)


def draw_more_bad_rows(generator: np.random.Generator) -> SampledLabels:
    """Return rows of which 60 of 100 are good; bad rows are labelled three times as often."""
    sample, truth = draw(generator, 0 + 1, 0.6)
    probabilities = np.where(truth > 0, 0.15, 0.45)
    labels = np.where(generator.random(ROWS) < probabilities, truth, np.nan)
    return SampledLabels(sample.rows, sample.scores, labels, probabilities)


def test_weights_undo_the_probabilities_of_a_few_drawings() -> None:
    generator = np.random.default_rng(5)
    values = [estimate_label_mean(draw_more_bad_rows(generator)).estimate.value for _ in range(5)]
    assert np.mean(np.array(values, dtype=np.float64)) == pytest.approx(0.6, abs=0.04)  # without weights about 0.5


@pytest.mark.simulation
def test_weights_undo_the_probabilities_of_drawing() -> None:
    generator = np.random.default_rng(5)
    held, plain, weighted = 0, [], []
    for _ in range(60):
        sample = draw_more_bad_rows(generator)
        found = estimate_label_mean(sample)
        held += covers(found.estimate.interval(), 0.6)
        weighted.append(found.estimate.value)
        plain.append(np.nanmean(sample.labels))
    assert np.mean(plain) < 0.4
    assert np.mean(np.array(weighted, dtype=np.float64)) == pytest.approx(0.6, abs=0.015)
    assert held / 60 >= 0.91


def test_rows_of_a_group_count_as_one_unit() -> None:
    generator = np.random.default_rng(6)
    sample, _ = draw(generator, 120, sensitivity=0.8)
    twice = SampledLabels(
        [*sample.rows, *(f"{row} again" for row in sample.rows)],
        np.tile(sample.scores, 2),
        np.tile(sample.labels, 2),
        groups=[*sample.rows, *sample.rows],
    )
    alone, together = (estimate_label_mean(each).estimate.interval() for each in (sample, twice))
    assert together.low == pytest.approx(alone.low, abs=0.01)
    assert together.high == pytest.approx(alone.high, abs=0.01)


def test_a_judge_that_knows_nothing_gets_no_weight() -> None:
    generator = np.random.default_rng(7)
    sample, _ = draw(generator, 100)
    noise = SampledLabels(sample.rows, generator.random(ROWS), sample.labels)
    labels = sample.labels[np.isfinite(sample.labels)]
    found = estimate_label_mean(noise)
    error = labels.std(ddof=1) / 10
    interval = found.estimate.interval()
    assert interval.high - interval.low <= 2 * 1.06 * 1.984 * error


@pytest.mark.simulation
def test_the_difference_of_two_runs_uses_the_rows_that_both_have() -> None:
    generator = np.random.default_rng(8)
    held, widths, apart = 0, [], []
    for _ in range(120):
        before, truth = draw(generator, 120, 0.6, sensitivity=0.85)
        improved = np.where((truth == 0) & (generator.random(ROWS) < 0.25), 1.0, truth)
        said = np.where(improved > 0, generator.random(ROWS) < 0.85, generator.random(ROWS) > 0.8).astype(float)
        after = SampledLabels(before.rows, said, np.where(np.isfinite(before.labels), improved, np.nan))
        found = estimate_label_difference(before, after)
        held += covers(found.estimate.interval(), 0.1)
        widths.append(found.estimate.interval().high - found.estimate.interval().low)
        other = SampledLabels([f"other {row}" for row in after.rows], after.scores, after.labels)
        unpaired = estimate_label_difference(before, other).estimate.interval()
        apart.append(unpaired.high - unpaired.low)
    assert held / 120 >= 0.9
    assert np.mean(widths) < 0.95 * np.mean(apart)


def test_the_difference_of_few_labels_combines_exact_limits() -> None:
    rows = [str(number) for number in range(40)]
    few = [SampledLabels(rows, np.ones(40), np.array([1.0] * k + [0.0] * (20 - k) + [np.nan] * 20)) for k in (8, 16)]
    found = estimate_label_difference(few[0], few[1])
    assert not found.is_powered
    assert found.estimate.value == pytest.approx(0.4)
    interval = found.estimate.interval()
    assert 0 < interval.low < 0.4 < interval.high < 0.75


def test_a_beta_mean_is_jeffreys_for_zeros_and_ones_and_close_to_a_bootstrap_otherwise() -> None:
    ones = BetaMean.from_units(Units.from_values(np.ones(30)), (0.0, 1.0))
    assert (ones.above, ones.below) == pytest.approx((30.5, 0.5))
    generator = np.random.default_rng(1)
    values = generator.beta(8, 2, 40)
    fitted = BetaMean.from_units(Units.from_values(values), (0.0, 1.0))
    weights = np.hstack([generator.standard_exponential((20_000, 40)), generator.standard_gamma(0.5, (20_000, 2))])
    drawn = (weights @ np.append(values, [0.0, 1.0])) / weights.sum(axis=1)
    tails = np.array([0.025, 0.5, 0.975])
    assert fitted.quantiles(tails) == pytest.approx(np.quantile(drawn, tails), abs=0.006)
    empty = BetaMean.from_units(Units(np.empty(0), np.empty(0)), (0.0, 1.0))
    assert (empty.above, empty.below) == pytest.approx((0.5, 0.5))


@pytest.mark.simulation
def test_differences_between_strata_are_no_chance() -> None:
    generator = np.random.default_rng(9)
    rows = [f"r{number:03}" for number in range(ROWS)]
    names = [("low", "middle", "high")[number % 3] for number in range(ROWS)]
    share = np.array([0.05, 0.5, 0.95] * (ROWS // 3))
    held, widths, plain = 0, [], []
    for _ in range(150):
        truth = (generator.random(ROWS) < share).astype(float)
        labels, probabilities = np.full(ROWS, np.nan), np.full(ROWS, np.nan)
        for stratum, number in (("low", 30), ("middle", 60), ("high", 30)):
            members = np.array([row for row in range(ROWS) if names[row] == stratum])
            chosen = generator.choice(members, number, replace=False)
            labels[chosen], probabilities[chosen] = truth[chosen], number / len(members)
        noise = generator.random(ROWS)  # a judge that knows nothing: only the strata help
        strata = [name if np.isfinite(label) else None for name, label in zip(names, labels, strict=True)]
        found = [
            estimate_label_mean(SampledLabels(rows, noise, labels, probabilities, None, each)).estimate.interval()
            for each in (strata, None)
        ]
        held += covers(found[0], 0.5)
        widths.append(found[0].high - found[0].low)
        plain.append(found[1].high - found[1].low)
    assert held / 150 >= 0.91
    assert np.mean(widths) < 0.85 * np.mean(plain)


def test_equal_labels_are_used_alone_whatever_their_rounding() -> None:
    for count in range(50, 300, 25):
        labels = np.append(np.ones(count), np.full(ROWS - count, np.nan))
        scores = np.random.default_rng(count).random(ROWS)
        found = estimate_label_mean(SampledLabels([str(number) for number in range(ROWS)], scores, labels))
        assert not found.is_powered
        assert found.estimate.limits(0.05).low == pytest.approx(0.05 ** (1 / count))


def select_labels(generator: np.random.Generator, kind: str) -> SampledLabels:
    """A run of scores with many ties, of which 50 or 100 rows are labelled, chosen at random or by their scores."""
    scores = np.where(generator.random(300) < 0.6, 1.0, generator.integers(0, 4, 300) / 4)
    worst, shuffled = np.argsort(scores, kind="stable"), generator.permutation(300)
    chosen = {"random": shuffled[:100], "worst": worst[:100], "half": np.append(worst[:50], shuffled[:50])}[kind]
    labels = np.full(300, np.nan)
    labels[chosen] = 1.0
    return SampledLabels([f"r{number}" for number in range(300)], scores, labels)


def test_rows_chosen_by_their_scores_are_no_random_sample() -> None:
    generator = np.random.default_rng(6)
    found = {kind: [p_random(select_labels(generator, kind)) or 0.0 for _ in range(200)] for kind in ("worst", "half")}
    assert all(p < 0.001 for p in found["worst"])
    assert sum(p < 0.001 for p in found["half"]) >= 195


def test_a_random_sample_is_one() -> None:
    generator = np.random.default_rng(7)
    found = np.array([p_random(select_labels(generator, "random")) for _ in range(2000)], dtype=np.float64)
    assert (found < 0.001).sum() <= 8
    assert 60 <= (found < 0.05).sum() <= 140


def test_nothing_is_said_of_weighted_few_and_grouped_rows() -> None:
    sample = select_labels(np.random.default_rng(8), "worst")
    weighted = SampledLabels(sample.rows, sample.scores, sample.labels, np.linspace(0.1, 1, 300))
    few = SampledLabels(sample.rows[:8], sample.scores[:8], np.array([1.0] * 4 + [np.nan] * 4))
    whole = SampledLabels(sample.rows, sample.scores, np.ones(300))
    of_each = SampledLabels(sample.rows, np.arange(300.0), sample.labels, groups=[str(i // 30) for i in range(300)])
    of_each.labels[::30] = 1.0
    assert [p_random(each) for each in (weighted, few, whole, of_each)] == [None] * 4


def test_few_labels_of_strata_are_worth_more_than_as_many_of_all_rows() -> None:
    """40 of 400 rows are labelled, and the strata part good rows from bad ones."""
    rows = [f"row {number:03}" for number in range(400)]
    truth = np.array([1.0] * 280 + [0.0] * 120)
    truth[::40] = 1 - truth[::40]
    labels = np.where(np.arange(400) % 10 == 0, truth, np.nan)
    scores = np.where(np.arange(400) < 280, 0.9, 0.1)
    strata = [None if np.isnan(label) else "A" if number < 280 else "B" for number, label in enumerate(labels)]
    few = [None if np.isnan(label) else f"{number // 40}" for number, label in enumerate(labels)]
    groups = [f"group {number // 20}" for number in range(400)]

    def width(strata: list[str | None] | None, scores: Floats, groups: list[str] | None = None) -> float:
        found = estimate_label_mean(SampledLabels(rows, scores, labels, None, groups, strata)).estimate
        interval, limits = found.interval(), found.strict_limits(0.05)
        assert found.value is not None
        assert interval.low < found.value < interval.high
        assert limits.low < found.value < limits.high
        return interval.high - interval.low

    alone = np.where(np.arange(400) // 10 % 2 == 0, 0.1, 0.9)  # a judge that knows nothing: labels are used alone
    assert 0.6 < width(strata, alone) / width(None, alone) < 0.95
    assert 0.6 < width(strata, scores) / width(None, scores) < 1.1
    for given, of in ((few, None), (strata, groups)):
        assert width(given, alone, of) == width(None, alone, of)


def test_claims_count_by_their_part_in_the_score_of_a_row() -> None:
    """Rows with one and with nine claims: labels of claims that all agree with the judge give the mean over rows."""
    numbers = np.tile([1, 9], 60)
    row = np.repeat(np.arange(120), numbers)
    scores = np.where(numbers[row] == 1, 1.0, 0.0)
    labels = np.where(np.random.default_rng(9).random(len(row)) < 0.5, scores, np.nan)
    names = [f"{number:04}" for number in range(len(row))]
    groups = [f"row {number:03}" for number in row]
    claims = SampledLabels(names, scores, labels, None, groups, None, 1 / numbers[row])
    assert estimate_label_mean(claims).estimate.value == pytest.approx(0.5)
    assert estimate_label_mean(replace(claims, weights=None)).estimate.value == pytest.approx(0.1, abs=0.02)
    whole = replace(claims, labels=scores)
    assert estimate_label_mean(whole).estimate.value == pytest.approx(0.5)
