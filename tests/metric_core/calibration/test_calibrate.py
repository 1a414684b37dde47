"""Agreement of a judge with people: hand-computed values, other libraries, and judges of known quality."""

from collections import Counter

import numpy as np
import pytest

from metric_core.calibration import calibrate as calibration
from metric_core.calibration import weighted_statistics as weighted
from metric_core.calibration.calibrate import FIGURES, LabelledScores, measure_human_agreement
from metric_core.calibration.figure_intervals import error_interval
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
    counts = weighted.confusion_counts(YES, SAID)(np.ones((1, 10)))
    assert [float(count[0]) for count in counts] == [4, 2, 1, 3]
    assert weighted.agreement_of(counts) == pytest.approx(0.7)
    assert weighted.kappa_of(counts) == pytest.approx(0.4)
    assert value(weighted.auroc(YES, SCORES)) == pytest.approx(20.5 / 25)
    assert value(weighted.best_threshold(YES, SCORES)) == pytest.approx(0.65)


def test_the_best_threshold_has_the_greatest_kappa_also_where_labels_are_one_sided() -> None:
    generator = np.random.default_rng(4)
    yes = generator.random(300) < 0.9
    scores = np.where(yes, generator.beta(6, 2, 300), generator.beta(3, 3, 300))
    whole = np.ones((1, 300))
    kappas = {
        float(cut): float(weighted.kappa_of(weighted.confusion_counts(yes, scores >= cut)(whole))[0]) for cut in scores
    }
    best = value(weighted.best_threshold(yes, scores), 300)
    found = float(weighted.kappa_of(weighted.confusion_counts(yes, scores >= best)(whole))[0])
    assert found == pytest.approx(max(kappas.values()))


def test_hand_values_of_probabilities() -> None:
    labels, said = np.array([1.0, 0.0, 1.0]), np.array([0.95, 0.91, 0.35])
    assert value(weighted.mean_of((said - labels) ** 2), 3) == pytest.approx((0.05**2 + 0.91**2 + 0.65**2) / 3)
    assert np.isnan(weighted.calibration_error(labels[[0, 2]], said[[0, 2]], np.arange(2)))  # a row in each bin
    assert weighted.calibration_error(labels, said, np.arange(3)) == 0  # -0.05 and 0.91: their product is below 0
    alike = np.array([0.25, 0.25, 0.25, 0.25]), np.array([0.95, 0.91, 0.95, 0.93])
    errors = alike[1] - alike[0]
    square = (errors.sum() ** 2 - (errors**2).sum()) / 12
    assert weighted.calibration_error(*alike, np.arange(4)) == pytest.approx(np.sqrt(square))
    assert weighted.calibration_error(*alike, np.array([0, 0, 1, 1])) == pytest.approx(
        np.sqrt((errors[0] + errors[1]) * (errors[2] + errors[3]) / 4)
    )


@pytest.mark.parametrize("rows", [20, 200])
def test_a_judge_whose_probabilities_are_right_has_hardly_a_calibration_error_with_few_rows(rows: int) -> None:
    errors = []
    for seed in range(200):
        labels, probabilities = world(seed, rows, ProbabilityMap(1.0, 0.0))
        errors.append(weighted.calibration_error(labels, probabilities, np.arange(rows)))
    square = np.nanmean(np.square(errors))
    assert np.sqrt(square) < (0.17 if rows == 20 else 0.05)
    assert np.nanmedian(errors) < (0.15 if rows == 20 else 0.05)
    labels, probabilities = world(1, 4000, ProbabilityMap(0.4, 0.0))
    assert weighted.calibration_error(labels, probabilities, np.arange(4000)) > 0.1


def test_other_libraries_find_the_same() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    stats = pytest.importorskip("scipy.stats")
    generator = np.random.default_rng(7)
    yes, scores = generator.random(200) < 0.4, generator.integers(0, 12, 200) / 11
    said = scores > 0.5
    counts = weighted.confusion_counts(yes, said)(np.ones((1, 200)))
    assert float(weighted.kappa_of(counts)[0]) == pytest.approx(metrics.cohen_kappa_score(yes, said))
    assert value(weighted.auroc(yes, scores), 200) == pytest.approx(metrics.roc_auc_score(yes, scores))
    grades = generator.integers(1, 5, 200).astype(float)
    assert value(weighted.spearman(grades, scores), 200) == pytest.approx(stats.spearmanr(grades, scores).statistic)


def test_a_row_of_weight_two_counts_like_two_rows() -> None:
    weights = np.array([2, 0, 1, 3, 1, 1, 0, 2, 1, 4])
    drawn = np.repeat(np.arange(10), weights)

    def pair(make: object, left: object, right: object) -> None:
        once = make(left, right)(weights[None, :].astype(float))  # type: ignore[operator]
        again = make(left[drawn], right[drawn])(np.ones((1, len(drawn))))  # type: ignore[operator, index]
        assert once == pytest.approx(again)

    for figure in (weighted.agreement_of, weighted.kappa_of):
        pair(lambda left, right, figure=figure: lambda w: figure(weighted.confusion_counts(left, right)(w)), YES, SAID)
    pair(weighted.auroc, YES, SCORES)
    pair(weighted.spearman, LABELS, SCORES)


@pytest.mark.simulation
def test_intervals_hold_with_few_rows_of_a_kind_and_the_end_that_gates_read_errs_seldom() -> None:
    generator = np.random.default_rng(8)

    def draw(rows: int) -> tuple[Floats, Floats]:
        labels = (generator.random(rows) < 0.9).astype(float)
        return labels, np.where(labels > 0, generator.beta(12, 1.5, rows), generator.beta(2, 4, rows))

    labels, scores = draw(200_000)
    auroc = value(weighted.auroc(labels > 0.5, scores), 200_000)
    best = value(weighted.best_threshold(labels > 0.5, scores), 200_000)
    counts = weighted.confusion_counts(labels > 0.5, scores >= best)(np.ones((1, 200_000)))
    kappa = float(weighted.kappa_of(counts)[0])
    held, above, measured = 0, 0, 0
    for seed in range(60):
        figures = measure_human_agreement(LabelledScores(Scale.BINARY, *draw(50), (0.0, 1.0)), seed).figures
        if "kappa" not in figures:
            continue
        measured += 1
        interval, least = figures["auroc"].interval, figures["kappa"].interval
        held += interval is not None and interval.low <= auroc <= interval.high
        above += least is not None and least.low > kappa
    assert measured >= 50
    assert held / measured >= 0.88  # a plain bootstrap: 0.31
    assert above / measured <= 0.04  # a bootstrap that keeps the threshold: 0.36


def test_the_map_of_an_oversure_judge_is_found_again() -> None:
    truth = ProbabilityMap(0.5, -0.4)
    labels, probabilities = world(3, 2000, truth)
    found = measure_human_agreement(make_labelled_scores(labels, probabilities))
    assert found.map is not None
    assert (found.map.slope, found.map.intercept) == pytest.approx((0.5, -0.4), abs=0.12)
    error = found.figures["calibration_error"]
    assert error.interval is not None
    assert error.interval.low == 0 < error.value < error.interval.high


def test_a_few_rows_that_a_judge_tells_apart_do_not_make_it_certain() -> None:
    labels, said = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.4, 0.45, 0.55, 0.6])

    def predict(probability_map: ProbabilityMap, rows: Rows) -> Floats:
        return np.array([probability_map(probability) for probability in said[rows]])

    fitted = fit_map(labels, np.arange(4), predict)
    assert 1 <= fitted.slope < 20
    assert 0.001 < fitted(0.4) < fitted(0.6) < 0.999


@pytest.mark.simulation
def test_a_judge_that_guesses_does_not_seem_to_agree() -> None:
    kappas = []
    for seed in range(30):
        generator = np.random.default_rng(seed)
        labels, scores = (generator.random(60) < 0.5).astype(float), generator.random(60)
        found = measure_human_agreement(LabelledScores(Scale.BINARY, labels, scores, (0.0, 1.0)), seed)
        kappas.append(found.figures["kappa"].value)
    assert abs(np.mean(kappas)) < 0.08


def test_grades_are_compared_by_rank_and_by_distance() -> None:
    labels, scores = np.array([0.0, 0.25, 0.5, 1.0]), np.array([0.1, 0.2, 0.6, 0.7])
    found = measure_human_agreement(LabelledScores(Scale.GRADED, labels, scores, (0.0, 1.0), probabilities=scores))
    figures = {name: figure.value for name, figure in found.figures.items()}
    assert figures["spearman"] == pytest.approx(1)
    assert figures["agreement"] == pytest.approx(1 - (0.1 + 0.05 + 0.1 + 0.3) / 4)
    assert {"kappa", "auroc"}.isdisjoint(figures)
    assert found.map is None


def test_a_metric_without_a_range_has_no_distance() -> None:
    graded = measure_human_agreement(LabelledScores(Scale.GRADED, SCORES, SCORES * 40))
    assert list(graded.figures) == ["spearman"]


def test_undefined_figures_are_missing_and_never_nan() -> None:
    found = measure_human_agreement(LabelledScores(Scale.GRADED, LABELS, np.full(10, 0.5), (0.0, 1.0)))
    assert list(found.figures) == ["agreement"]
    one = measure_human_agreement(
        LabelledScores(Scale.BINARY, np.array([0.0, 0, 0, 1]), np.array([0.1, 0.2, 0.3, 0.9]), (0, 1))
    )
    assert "kappa" not in one.figures  # no threshold can be told without the only positive row
    assert all(np.isfinite(figure.value) for figure in one.figures.values())


def test_every_figure_has_a_name_for_people() -> None:
    labels, probabilities = world(1, 40, ProbabilityMap(1.0, 0.0))
    binary = measure_human_agreement(make_labelled_scores(labels, probabilities)).figures
    graded = measure_human_agreement(LabelledScores(Scale.GRADED, probabilities, labels, (0, 1), probabilities)).figures
    assert {*binary, *graded} == set(FIGURES)
    assert list(binary) == [name for name in FIGURES if name in binary]


def test_the_same_seed_gives_the_same_and_another_one_other_intervals() -> None:
    rows = make_labelled_scores(*world(5, 60, ProbabilityMap(1.0, 0.0)))
    assert measure_human_agreement(rows, 1) == measure_human_agreement(rows, 1)
    first, second = (measure_human_agreement(rows, seed).figures["auroc"] for seed in (1, 2))
    assert first.value == second.value
    assert first.interval != second.interval


def test_rows_of_a_group_are_drawn_together_and_never_part() -> None:
    labels, probabilities = world(5, 90, ProbabilityMap(1.0, 0.0))
    groups = [f"g{row % 30}" for row in range(90)]
    rows = make_labelled_scores(labels, probabilities, groups=groups)
    units = calibration._units(rows)
    for fold in calibration._folds(labels, units, 1):
        assert {groups[row] for row in fold}.isdisjoint(groups[row] for row in set(range(90)) - set(fold.tolist()))
    for resamples in calibration._resamples(units, np.ones(90), 1):
        for weights in (resamples.weights, resamples.drawn):
            assert (weights[:, :30] == weights[:, 30:60]).all()
    tripled = make_labelled_scores(np.tile(labels[:30], 3), np.tile(probabilities[:30], 3), groups=groups)
    single = make_labelled_scores(labels[:30], probabilities[:30])
    wide, told = (measure_human_agreement(of).figures["auroc"].interval for of in (tripled, single))
    assert wide is not None
    assert told is not None
    assert wide.high - wide.low == pytest.approx(told.high - told.low, abs=0.05)


def test_rows_of_one_group_have_figures_without_intervals_and_none_out_of_sample() -> None:
    found = measure_human_agreement(make_labelled_scores(LABELS, SCORES, groups=["one"] * 10))
    assert found.figures["auroc"].interval is None
    assert {"kappa", "agreement"}.isdisjoint(found.figures)
    assert found.map is not None


@pytest.mark.simulation
def test_rank_correlations_hold_with_tied_grades() -> None:
    generator = np.random.default_rng(12)

    def draw(rows: int) -> tuple[Floats, Floats]:
        grades = generator.choice(5, rows, p=[0.05, 0.05, 0.1, 0.2, 0.6]) / 4
        return grades, np.round(np.clip(grades + generator.normal(0, 0.2, rows), 0, 1) * 4) / 4

    grades, scores = draw(100_000)
    truth = {name: value(getattr(weighted, name)(grades, scores), 100_000) for name in ("spearman",)}
    held, above = Counter[str](), Counter[str]()
    for seed in range(150):
        figures = measure_human_agreement(LabelledScores(Scale.GRADED, *draw(30), (0.0, 1.0)), seed).figures
        for name, true in truth.items():
            interval = figures[name].interval
            assert interval is not None
            held[name] += interval.low <= true <= interval.high
            above[name] += interval.low > true
    for name in truth:
        assert held[name] / 150 >= 0.91
        assert above[name] / 150 <= 0.06  # nominal 2.5 %


def test_the_interval_of_a_rank_correlation_is_about_as_wide_as_that_of_bonett_and_wright() -> None:
    generator = np.random.default_rng(12)
    grades = generator.choice(5, 30) / 4
    scores = np.clip(grades + generator.normal(0, 0.2, 30), 0, 1)
    found = measure_human_agreement(LabelledScores(Scale.GRADED, grades, scores, (0.0, 1.0))).figures["spearman"]
    half = 1.96 * np.sqrt((1 + found.value**2 / 2) / 27)
    assert found.interval is not None
    width = np.arctanh(found.interval.high) - np.arctanh(found.interval.low)
    assert width == pytest.approx(2 * half, rel=0.35)


def test_a_perfect_rank_correlation_is_not_certain() -> None:
    equal = np.tile(np.arange(5) / 4, 2)
    exact = measure_human_agreement(LabelledScores(Scale.GRADED, equal, equal, (0.0, 1.0))).figures["spearman"]
    assert exact.value == pytest.approx(1)
    assert exact.interval is not None
    assert exact.interval.high == pytest.approx(1)


def test_rows_that_stand_for_more_rows_weigh_more() -> None:
    labels, scores = np.array([1, 1, 1, 0, 0, 0.0]), np.array([0.9, 0.8, 0.2, 0.1, 0.3, 0.7])
    weights = np.array([3, 1, 1, 1, 2, 1.0])
    again = np.repeat(np.arange(6), weights.astype(int))
    assert value(weighted.auroc(labels[again] > 0.5, scores[again]), len(again)) == pytest.approx(
        float(weighted.auroc(labels > 0.5, scores)(weights[None])[0])
    )
    once = measure_human_agreement(LabelledScores(Scale.BINARY, labels, scores, (0.0, 1.0), scores, weights=weights))
    twice = measure_human_agreement(
        LabelledScores(Scale.BINARY, labels[again], scores[again], (0.0, 1.0), scores[again])
    )
    assert once.figures["auroc"].value == pytest.approx(twice.figures["auroc"].value)


@pytest.mark.parametrize(("kind", "most"), [("right", 0.18), ("overconfident", 0.24), ("mostly certain", 0.2)])
def test_a_calibration_error_is_seldom_above_its_limit(kind: str, most: float) -> None:
    generator = np.random.default_rng(21)

    def draw(rows: int) -> tuple[Floats, Floats]:
        if kind == "mostly certain":
            said = generator.choice([0.02, 0.9, 0.95, 0.99], rows)
            return (generator.random(rows) < said * 0.9).astype(float), said
        said = generator.beta(4, 1.5, rows)
        chance = said if kind == "right" else 0.5 + (said - 0.5) * 0.6
        return (generator.random(rows) < chance).astype(float), said

    truth = weighted.calibration_error(*draw(100_000), np.arange(100_000))
    limits = []
    for _ in range(200):
        labels, said = draw(100)
        deviation = weighted.calibration_deviation(labels, said)
        drawn = deviation(generator.standard_exponential((300, 100)), generator.standard_exponential((300, 2)))
        found = error_interval(weighted.calibration_error(labels, said, np.arange(100)), [drawn])
        assert found is not None
        limits.append(found.high)
    assert np.mean(np.array(limits) >= truth) >= 0.91
    assert np.mean(limits) < most + 0.05


def test_few_effective_groups_have_no_intervals() -> None:
    """60 rows of one author and 40 of as many others say as much as 1.7 groups."""
    generator = np.random.default_rng(3)
    labels = (generator.random(100) < 0.6).astype(float)
    scores = np.clip(labels * 0.6 + generator.normal(0.2, 0.1, 100), 0, 1)
    names = ["one"] * 60 + [f"author {number}" for number in range(40)]
    for rows, groups in ((100, names), (4, list("abcd"))):
        judged = LabelledScores(Scale.BINARY, labels[:rows], scores[:rows], (0.0, 1.0), scores[:rows], groups=groups)
        figures = measure_human_agreement(judged).figures
        assert "auroc" in figures
        assert {figure.interval for figure in figures.values()} == {None}
