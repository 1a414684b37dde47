"""Agreement of a judge with people: figures with bootstrap intervals, and a map of its probabilities.

Everything fitted to labels (a threshold, a map) is evaluated on rows that it was not fitted to. Grouped rows are
resampled together and never split between fitting and evaluation.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from metric_core.calibration import weighted_statistics as weighted
from metric_core.calibration.labels import Scale
from metric_core.calibration.platt import Predict, ProbabilityMap, Rows, fit_map, predict_out_of_sample
from metric_core.calibration.weighted_statistics import Booleans, Statistic
from metric_core.statistics.resampling import LEVEL, SEED, Floats, Interval

RESAMPLES = 1000
FOLDS = 5

FIGURES: dict[str, str] = {
    "auroc": "AUROC of the score",
    "auroc_probability": "AUROC of the probabilities",
    "kappa": "Cohen's kappa at the best threshold",
    "agreement": "agreement at the best threshold",
    "balanced_accuracy": "balanced accuracy at the best threshold",
    "threshold": "best threshold of the score",
    "kappa_middle": "Cohen's kappa at the middle",
    "agreement_middle": "agreement at the middle",
    "balanced_accuracy_middle": "balanced accuracy at the middle",
    "spearman": "Spearman's correlation",
    "kendall": "Kendall's tau",
    "mae": "mean absolute error",
    "mae_mapped": "mean absolute error, mapped",
    "brier": "Brier score",
    "brier_mapped": "Brier score, mapped",
    "ece": "expected calibration error",
    "ece_mapped": "expected calibration error, mapped",
}
"""Name of a figure -> title, in display order."""

_BATCH_CELLS = 4_000_000


@dataclass(frozen=True, slots=True)
class LabelledScores:
    """Rows with labels by people and scores by a judge.

    Args:
        scale: Kind of labels.
        labels: 0 or 1; or grades, scaled to [0, 1] if `bounds` are known, else unscaled.
        scores: Scores of the metric.
        bounds: Least and greatest score; None if the metric has no bounds.
        probabilities: Scores computed from the judge's probabilities instead of its verdicts, in [0, 1].
        predict: Function that computes such scores under a map of the probabilities; None if the judge gives none.
        groups: Group of each row; None if rows are independent.
    """

    scale: Scale
    labels: Floats
    scores: Floats
    bounds: tuple[float, float] | None = None
    probabilities: Floats | None = None
    predict: Predict | None = None
    groups: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with its 95 % bootstrap interval, which is None if the figure is undefined for too many resamples."""

    value: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Confusion:
    """Counts of rows by the answers of people and of the judge, yes or no."""

    both: int
    judge_only: int
    people_only: int
    neither: int


@dataclass(frozen=True, slots=True)
class HumanAgreement:
    """Agreement of a judge with people.

    Args:
        figures: Figures by name, see FIGURES; figures that are undefined for the data are missing.
        best: Counts at the best threshold, which is chosen for each row without that row.
        middle: Counts at the middle of the range of the metric.
        map: Map of the judge's probabilities, fitted to all rows.
    """

    figures: dict[str, Figure]
    best: Confusion | None = None
    middle: Confusion | None = None
    map: ProbabilityMap | None = None


def measure_agreement(judged: LabelledScores, seed: int = SEED) -> HumanAgreement:
    """Measure the agreement of a judge with people, and fit the map of its probabilities.

    Args:
        judged: Labels and scores of at least two rows.
        seed: Seed of resampling and of the split into folds.

    >>> judged = LabelledScores(Scale.BINARY, np.array([0.0, 0, 1, 1]), np.array([0.1, 0.6, 0.4, 0.9]), (0, 1))
    >>> agreement = measure_agreement(judged)
    >>> agreement.figures["auroc"].value, agreement.middle
    (0.75, Confusion(both=1, judge_only=1, people_only=1, neither=1))
    """
    units = _units(judged)
    folds = _folds(judged.labels, units, seed)
    mapped = fitted = None
    if judged.predict is not None and judged.probabilities is not None:
        fitted = fit_map(judged.labels, np.arange(len(judged.labels)), judged.predict)
        mapped = predict_out_of_sample(judged.labels, folds, judged.predict) if len(folds) > 1 else None
    statistics = dict(_probability_statistics(judged, mapped))
    best = middle = None
    if judged.scale is Scale.BINARY:
        labels = judged.labels > 0.5
        at_best = _predict_out_of_sample(labels, judged.scores, folds)
        statistics |= _binary_statistics(judged, labels, at_best)
        best = None if at_best is None else _confusion(labels, at_best)
        middle = None if judged.bounds is None else _confusion(labels, _above_middle(judged.scores, judged.bounds))
    else:
        statistics |= _graded_statistics(judged, mapped)
    figures = _figures(statistics, units, seed)
    return HumanAgreement({name: figures[name] for name in FIGURES if name in figures}, best, middle, fitted)


def _binary_statistics(judged: LabelledScores, labels: Booleans, at_best: Booleans | None) -> dict[str, Statistic]:
    statistics = {
        "auroc": weighted.auroc(labels, judged.scores),
        "threshold": weighted.best_threshold(labels, judged.scores),
    }
    if judged.predict is not None and judged.probabilities is not None:
        statistics["auroc_probability"] = weighted.auroc(labels, judged.probabilities)
    middle = None if judged.bounds is None else _above_middle(judged.scores, judged.bounds)
    for suffix, predicted in (("", at_best), ("_middle", middle)):
        if predicted is not None:
            statistics[f"agreement{suffix}"] = weighted.agreement(labels, predicted)
            statistics[f"kappa{suffix}"] = weighted.kappa(labels, predicted)
            statistics[f"balanced_accuracy{suffix}"] = weighted.balanced_accuracy(labels, predicted)
    return statistics


def _graded_statistics(judged: LabelledScores, mapped: Floats | None) -> dict[str, Statistic]:
    statistics = {
        "spearman": weighted.spearman(judged.labels, judged.scores),
        "kendall": weighted.kendall(judged.labels, judged.scores),
    }
    if judged.bounds is not None:
        statistics["mae"] = weighted.mean_of(np.abs(scale_to_unit(judged.scores, judged.bounds) - judged.labels))
        if mapped is not None:
            statistics["mae_mapped"] = weighted.mean_of(np.abs(mapped - judged.labels))
    return statistics


def _probability_statistics(judged: LabelledScores, mapped: Floats | None) -> Iterator[tuple[str, Statistic]]:
    for name, predicted in (("", judged.probabilities), ("_mapped", mapped)):
        if predicted is not None:
            yield f"brier{name}", weighted.mean_of((predicted - judged.labels) ** 2)
            yield f"ece{name}", weighted.calibration_error(judged.labels, predicted)


def scale_to_unit(values: Floats, bounds: tuple[float, float]) -> Floats:
    """Scale values so that the bounds become 0 and 1.

    >>> scale_to_unit(np.array([1.0, 3.0]), (1.0, 5.0)).tolist()
    [0.0, 0.5]
    """
    return (values - bounds[0]) / (bounds[1] - bounds[0])


def _above_middle(scores: Floats, bounds: tuple[float, float]) -> Booleans:
    return scores >= (bounds[0] + bounds[1]) / 2


def _confusion(labels: Booleans, predicted: Booleans) -> Confusion:
    counts = weighted.confusion_counts(labels, predicted)(np.ones((1, len(labels))))
    return Confusion(*(int(count[0]) for count in counts))


def _predict_out_of_sample(labels: Booleans, scores: Floats, folds: Sequence[Rows]) -> Booleans | None:
    """Return the judge's answer for each row at the threshold of the other folds; None if a fold has no threshold."""
    predicted = np.zeros(len(labels), dtype=np.bool_)
    for fold in folds:
        weights = np.ones((1, len(labels)))
        weights[0, fold] = 0
        others = weights[0] > 0
        if not (labels & others).any() or not (~labels & others).any():
            return None
        threshold = weighted.best_threshold(labels[others], scores[others])(np.ones((1, int(others.sum()))))[0]
        predicted[fold] = scores[fold] >= threshold
    return predicted


def _units(judged: LabelledScores) -> Rows:
    """Return the number of each row's unit of resampling: its group, or the row itself."""
    if judged.groups is None:
        return np.arange(len(judged.labels))
    return np.unique(np.asarray(judged.groups, dtype=object).astype(str), return_inverse=True)[1].astype(np.intp)


def _folds(labels: Floats, units: Rows, seed: int) -> list[Rows]:
    """Split rows into at most FOLDS parts with about the same distribution of labels."""
    count = int(units.max()) + 1
    means = np.bincount(units, weights=labels) / np.bincount(units)
    order = np.lexsort((np.random.default_rng([seed, 1]).random(count), means))
    fold_of = np.empty(count, dtype=np.intp)
    fold_of[order] = np.arange(count) % FOLDS
    return [rows for number in range(min(FOLDS, count)) if len(rows := np.flatnonzero(fold_of[units] == number))]


def _figures(statistics: Mapping[str, Statistic], units: Rows, seed: int) -> dict[str, Figure]:
    whole = np.ones((1, len(units)))
    values = {name: float(statistic(whole)[0]) for name, statistic in statistics.items()}
    drawn: dict[str, list[Floats]] = {name: [] for name, value in values.items() if np.isfinite(value)}
    for weights in _resamples(units, seed):
        for name, batches in drawn.items():
            batches.append(statistics[name](weights))
    return {name: Figure(values[name], _interval(batches)) for name, batches in drawn.items()}


def _resamples(units: Rows, seed: int) -> Iterator[Floats]:
    """Yield batches of resamples: the number of times that each row is drawn, one resample per row of the array."""
    count = int(units.max()) + 1
    if count < 2:
        return
    generator = np.random.default_rng([seed, zlib.crc32(b"calibration")])
    batch = max(1, _BATCH_CELLS // len(units))
    for start in range(0, RESAMPLES, batch):
        size = min(batch, RESAMPLES - start)
        yield generator.multinomial(count, np.full(count, 1 / count), size=size)[:, units].astype(np.float64)


def _interval(drawn: Sequence[Floats]) -> Interval | None:
    values = np.concatenate(drawn) if drawn else np.empty(0)
    finite = values[np.isfinite(values)]
    if len(finite) < max(2, len(values) / 2):
        return None
    low, high = np.quantile(finite, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high))
