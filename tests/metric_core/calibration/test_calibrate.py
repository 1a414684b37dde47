"""Agreement of a judge with people: hand-computed values, other libraries, and judges of known quality."""

import numpy as np
import pytest

from metric_core.calibration import calibrate as calibration
from metric_core.calibration import weighted_statistics as weighted
from metric_core.calibration.calibrate import FIGURES, Confusion, LabelledScores, measure_agreement
from metric_core.calibration.labels import Scale
from metric_core.calibration.platt import Floats, ProbabilityMap, Rows, fit_map
from metric_core.calibration.weighted_statistics import Statistic

LABELS = np.array([1, 1, 1, 1, 0, 0, 0, 0, 1, 0], dtype=float)
SCORES = np.array([0.9, 0.8, 0.7, 0.3, 0.4, 0.2, 0.1, 0.6, 0.5, 0.5])
SAID = SCORES >= 0.5
YES = LABELS > 0.5


def value(statistic: Statistic, rows: int = len(LABELS)) -> float:
    return float(statistic(np.ones((1, rows)))[0])


def world(seed: int, rows: int, truth: ProbabilityMap) -> tuple[Floats, Floats]:
    """Labels and a judge's probabilities; how often a probability is right is what the truth makes of it."""
    generator = np.random.default_rng(seed)
    probabilities = generator.uniform(0.02, 0.98, rows)
    real = np.array([truth(probability) for probability in probabilities])
    return (generator.random(rows) < real).astype(float), probabilities


def make_labelled_scores(labels: Floats, probabilities: Floats, **more: object) -> LabelledScores:
    def predict(probability_map: ProbabilityMap, rows: Rows) -> Floats:
        return np.array([probability_map(probability) for probability in probabilities[rows]])

    values = {"bounds": (0.0, 1.0), "probabilities": probabilities, "predict": predict, **more}
    return LabelledScores(Scale.BINARY, labels, probabilities, **values)  # type: ignore[arg-type]


def test_hand_values_of_binary_figures() -> None:
    assert value(weighted.agreement(YES, SAID)) == pytest.approx(0.7)
    assert value(weighted.kappa(YES, SAID)) == pytest.approx(0.4)
    assert value(weighted.balanced_accuracy(YES, SAID)) == pytest.approx(0.7)
    assert value(weighted.auroc(YES, SCORES)) == pytest.approx(20.5 / 25)
    assert value(weighted.best_threshold(YES, SCORES)) == pytest.approx(0.65)


def test_hand_values_of_probabilities() -> None:
    labels, said = np.array([1.0, 0.0, 1.0]), np.array([0.95, 0.91, 0.35])
    assert value(weighted.mean_of((said - labels) ** 2), 3) == pytest.approx((0.05**2 + 0.91**2 + 0.65**2) / 3)
    assert value(weighted.calibration_error(labels, said), 3) == pytest.approx((0.86 + 0.65) / 3)


def test_other_libraries_find_the_same() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    stats = pytest.importorskip("scipy.stats")
    generator = np.random.default_rng(7)
    yes, scores = generator.random(200) < 0.4, generator.integers(0, 12, 200) / 11
    said = scores > 0.5
    found = [value(s(yes, x), 200) for s, x in ((weighted.kappa, said), (weighted.balanced_accuracy, said))]
    assert found == pytest.approx([metrics.cohen_kappa_score(yes, said), metrics.balanced_accuracy_score(yes, said)])
    assert value(weighted.auroc(yes, scores), 200) == pytest.approx(metrics.roc_auc_score(yes, scores))
    grades = generator.integers(1, 5, 200).astype(float)
    assert value(weighted.spearman(grades, scores), 200) == pytest.approx(stats.spearmanr(grades, scores).statistic)
    assert value(weighted.kendall(grades, scores), 200) == pytest.approx(stats.kendalltau(grades, scores).statistic)


def test_a_row_of_weight_two_counts_like_two_rows() -> None:
    weights = np.array([2, 0, 1, 3, 1, 1, 0, 2, 1, 4])
    drawn = np.repeat(np.arange(10), weights)

    def pair(make: object, left: object, right: object) -> None:
        once = make(left, right)(weights[None, :].astype(float))  # type: ignore[operator]
        again = make(left[drawn], right[drawn])(np.ones((1, len(drawn))))  # type: ignore[operator, index]
        assert once == pytest.approx(again)

    for binary in (weighted.agreement, weighted.kappa, weighted.balanced_accuracy):
        pair(binary, YES, SAID)
    pair(weighted.auroc, YES, SCORES)
    for graded in (weighted.spearman, weighted.kendall, weighted.calibration_error):
        pair(graded, LABELS, SCORES)


def test_the_true_value_lies_in_95_of_100_intervals() -> None:
    truth = ProbabilityMap(1.5, 0.5)
    labels, probabilities = world(0, 200_000, truth)
    true = value(weighted.auroc(labels > 0.5, probabilities), 200_000)
    inside = 0
    for seed in range(1, 151):
        labels, probabilities = world(seed, 80, truth)
        statistics = {"auroc": weighted.auroc(labels > 0.5, probabilities)}
        interval = calibration._figures(statistics, np.arange(80), seed)["auroc"].interval
        inside += interval is not None and interval.low <= true <= interval.high
    assert 0.89 <= inside / 150 <= 0.99


def test_a_map_is_found_again_and_makes_an_oversure_judge_better_on_rows_it_has_not_seen() -> None:
    truth = ProbabilityMap(0.5, -0.4)
    labels, probabilities = world(3, 2000, truth)
    found = measure_agreement(make_labelled_scores(labels, probabilities))
    assert found.map is not None
    assert (found.map.slope, found.map.intercept) == pytest.approx((0.5, -0.4), abs=0.12)
    figures = {name: figure.value for name, figure in found.figures.items()}
    assert figures["brier_mapped"] < figures["brier"] - 0.01
    assert figures["ece_mapped"] < 0.05 < figures["ece"]


def test_a_few_rows_that_a_judge_tells_apart_do_not_make_it_certain() -> None:
    labels, said = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.4, 0.45, 0.55, 0.6])

    def predict(probability_map: ProbabilityMap, rows: Rows) -> Floats:
        return np.array([probability_map(probability) for probability in said[rows]])

    fitted = fit_map(labels, np.arange(4), predict)
    assert 1 <= fitted.slope < 20
    assert 0.001 < fitted(0.4) < fitted(0.6) < 0.999


def test_a_judge_that_guesses_does_not_seem_to_agree() -> None:
    kappas, chosen = [], []
    for seed in range(30):
        generator = np.random.default_rng(seed)
        labels, scores = (generator.random(60) < 0.5).astype(float), generator.random(60)
        found = measure_agreement(LabelledScores(Scale.BINARY, labels, scores, (0.0, 1.0)), seed)
        kappas.append(found.figures["kappa"].value)
        chosen.append(value(weighted.kappa(labels > 0.5, scores >= found.figures["threshold"].value), 60))
    assert abs(np.mean(kappas)) < 0.08
    assert np.mean(chosen) > 0.15


def test_grades_are_compared_by_rank_and_by_distance() -> None:
    labels, scores = np.array([0.0, 0.25, 0.5, 1.0]), np.array([0.1, 0.2, 0.6, 0.7])
    found = measure_agreement(LabelledScores(Scale.GRADED, labels, scores, (0.0, 1.0), probabilities=scores))
    figures = {name: figure.value for name, figure in found.figures.items()}
    assert (figures["spearman"], figures["kendall"]) == pytest.approx((1, 1))
    assert figures["mae"] == pytest.approx((0.1 + 0.05 + 0.1 + 0.3) / 4)
    assert {"kappa", "auroc", "threshold"}.isdisjoint(figures)
    assert (found.best, found.middle, found.map) == (None, None, None)


def test_a_metric_without_a_range_has_neither_a_middle_nor_a_distance() -> None:
    found = measure_agreement(LabelledScores(Scale.BINARY, LABELS, SCORES * 40))
    assert found.middle is None
    assert "kappa_middle" not in found.figures
    graded = measure_agreement(LabelledScores(Scale.GRADED, SCORES, SCORES * 40))
    assert list(graded.figures) == ["spearman", "kendall"]


def test_undefined_figures_are_missing_and_never_nan() -> None:
    found = measure_agreement(LabelledScores(Scale.GRADED, LABELS, np.full(10, 0.5), (0.0, 1.0)))
    assert list(found.figures) == ["mae"]
    one = measure_agreement(
        LabelledScores(Scale.BINARY, np.array([0.0, 0, 0, 1]), np.array([0.1, 0.2, 0.3, 0.9]), (0, 1))
    )
    assert "kappa" not in one.figures  # no threshold can be told without the only positive row
    assert one.best is None
    assert all(np.isfinite(figure.value) for figure in one.figures.values())


def test_every_figure_has_a_name_for_people() -> None:
    labels, probabilities = world(1, 40, ProbabilityMap(1.0, 0.0))
    binary = measure_agreement(make_labelled_scores(labels, probabilities)).figures
    graded = measure_agreement(LabelledScores(Scale.GRADED, probabilities, labels, (0, 1), probabilities)).figures
    assert {*binary, *graded, "mae_mapped"} == set(FIGURES)
    assert list(binary) == [name for name in FIGURES if name in binary]


def test_the_same_seed_gives_the_same_and_another_one_other_intervals() -> None:
    rows = make_labelled_scores(*world(5, 60, ProbabilityMap(1.0, 0.0)))
    assert measure_agreement(rows, 1) == measure_agreement(rows, 1)
    first, second = (measure_agreement(rows, seed).figures["auroc"] for seed in (1, 2))
    assert first.value == second.value
    assert first.interval != second.interval


def test_rows_of_a_group_are_drawn_together_and_never_part() -> None:
    labels, probabilities = world(5, 90, ProbabilityMap(1.0, 0.0))
    groups = [f"g{row % 30}" for row in range(90)]
    rows = make_labelled_scores(labels, probabilities, groups=groups)
    units = calibration._units(rows)
    for fold in calibration._folds(labels, units, 1):
        assert {groups[row] for row in fold}.isdisjoint(groups[row] for row in set(range(90)) - set(fold.tolist()))
    for weights in calibration._resamples(units, 1):
        assert (weights[:, :30] == weights[:, 30:60]).all()
    tripled = make_labelled_scores(np.tile(labels[:30], 3), np.tile(probabilities[:30], 3), groups=groups)
    single = make_labelled_scores(labels[:30], probabilities[:30])
    wide, told = (measure_agreement(of).figures["auroc"].interval for of in (tripled, single))
    assert wide is not None
    assert told is not None
    assert wide.high - wide.low == pytest.approx(told.high - told.low, abs=0.05)


def test_rows_of_one_group_have_figures_without_intervals_and_none_out_of_sample() -> None:
    found = measure_agreement(make_labelled_scores(LABELS, SCORES, groups=["one"] * 10))
    assert found.figures["auroc"].interval is None
    assert {"kappa", "brier_mapped"}.isdisjoint(found.figures)
    assert found.best is None
    assert found.map is not None


def test_counts_of_yes_and_no() -> None:
    found = measure_agreement(LabelledScores(Scale.BINARY, LABELS, SCORES, (0.0, 1.0)))
    assert found.middle == Confusion(both=4, judge_only=2, people_only=1, neither=3)
