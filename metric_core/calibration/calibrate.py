"""How far a judge agrees with people: figures with bootstrap intervals, and a map of its probabilities.

Everything that is chosen from the labels (a threshold, a map) is judged on rows that it was not chosen from. Rows that
belong together are drawn as a whole, and are never on both sides.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from metric_core.calibration import weighted_statistics as weighted
from metric_core.calibration.labels import Scale
from metric_core.calibration.platt import Predict, ProbabilityMap, fit_map, predict_out_of_sample
from metric_core.calibration.weighted_statistics import Booleans, Floats, Statistic
from metric_core.statistics.resampling import LEVEL, SEED, Interval

Rows: TypeAlias = NDArray[np.intp]

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
"""Every figure and what it is, in the order in which tables show them."""

_BATCH_CELLS = 4_000_000


@dataclass(frozen=True, slots=True)
class LabelledScores:
    """Rows that people labelled and a judge scored.

    Args:
        scale: whether labels are yes or no, or grades.
        labels: 0 or 1; or grades, from 0 (the lowest) to 1 where `bounds` are known, else as they are.
        scores: the metric's scores.
        bounds: the least and the greatest score; None where the metric has none.
        probabilities: what the metric says with the judge's probabilities in place of its verdicts, on [0, 1].
        predict: the same under a map; None where the judge gives no probabilities.
        groups: rows with equal names belong together; None: every row stands alone.
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
    """A figure and its 95 % bootstrap interval; None where too few resamples have the figure."""

    value: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often people and the judge said yes and no."""

    both: int
    judge_only: int
    people_only: int
    neither: int


@dataclass(frozen=True, slots=True)
class HumanAgreement:
    """How far a judge agrees with people.

    Args:
        figures: by name, see FIGURES; a figure that the data can not give is missing.
        best: at the best threshold, each row by a threshold that was chosen without it.
        middle: at the middle of the metric's range.
        map: of the judge's probabilities, fitted to all rows.
    """

    figures: dict[str, Figure]
    best: Confusion | None = None
    middle: Confusion | None = None
    map: ProbabilityMap | None = None


def measure_agreement(judged: LabelledScores, seed: int = SEED) -> HumanAgreement:
    """Compares, and fits the map.

    Args:
        judged: at least two rows.
        seed: where drawing rows and folds starts.

    >>> judged = LabelledScores(Scale.BINARY, np.array([0.0, 0, 1, 1]), np.array([0.1, 0.6, 0.4, 0.9]), (0, 1))
    >>> found = measure_agreement(judged)
    >>> found.figures["auroc"].value, found.middle
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
        said = _predict_out_of_sample(labels, judged.scores, folds)
        statistics |= _binary_statistics(judged, labels, said)
        best = None if said is None else _confusion(labels, said)
        middle = None if judged.bounds is None else _confusion(labels, _above_middle(judged.scores, judged.bounds))
    else:
        statistics |= _graded_statistics(judged, mapped)
    found = _figures(statistics, units, seed)
    return HumanAgreement({name: found[name] for name in FIGURES if name in found}, best, middle, fitted)


def _binary_statistics(judged: LabelledScores, labels: Booleans, said: Booleans | None) -> dict[str, Statistic]:
    found = {
        "auroc": weighted.auroc(labels, judged.scores),
        "threshold": weighted.best_threshold(labels, judged.scores),
    }
    if judged.predict is not None and judged.probabilities is not None:
        found["auroc_probability"] = weighted.auroc(labels, judged.probabilities)
    at = {"": said, "_middle": None if judged.bounds is None else _above_middle(judged.scores, judged.bounds)}
    for name, claimed in at.items():
        if claimed is not None:
            found[f"agreement{name}"] = weighted.agreement(labels, claimed)
            found[f"kappa{name}"] = weighted.kappa(labels, claimed)
            found[f"balanced_accuracy{name}"] = weighted.balanced_accuracy(labels, claimed)
    return found


def _graded_statistics(judged: LabelledScores, mapped: Floats | None) -> dict[str, Statistic]:
    found = {
        "spearman": weighted.spearman(judged.labels, judged.scores),
        "kendall": weighted.kendall(judged.labels, judged.scores),
    }
    if judged.bounds is not None:
        found["mae"] = weighted.mean_of(np.abs(scale_to_unit(judged.scores, judged.bounds) - judged.labels))
        if mapped is not None:
            found["mae_mapped"] = weighted.mean_of(np.abs(mapped - judged.labels))
    return found


def _probability_statistics(judged: LabelledScores, mapped: Floats | None) -> Iterator[tuple[str, Statistic]]:
    for name, predicted in (("", judged.probabilities), ("_mapped", mapped)):
        if predicted is not None:
            yield f"brier{name}", weighted.mean_of((predicted - judged.labels) ** 2)
            yield f"ece{name}", weighted.calibration_error(judged.labels, predicted)


def scale_to_unit(values: Floats, bounds: tuple[float, float]) -> Floats:
    """Values from their least to their greatest as 0 to 1.

    >>> scale_to_unit(np.array([1.0, 3.0]), (1.0, 5.0)).tolist()
    [0.0, 0.5]
    """
    return (values - bounds[0]) / (bounds[1] - bounds[0])


def _above_middle(scores: Floats, bounds: tuple[float, float]) -> Booleans:
    return scores >= (bounds[0] + bounds[1]) / 2


def _confusion(labels: Booleans, said: Booleans) -> Confusion:
    found = weighted.confusion_counts(labels, said)(np.ones((1, len(labels))))
    return Confusion(*(int(count[0]) for count in found))


def _predict_out_of_sample(labels: Booleans, scores: Floats, folds: Sequence[Rows]) -> Booleans | None:
    """What the judge says of each row at the threshold of the other folds; None where a threshold can not be told."""
    said = np.zeros(len(labels), dtype=np.bool_)
    for fold in folds:
        weights = np.ones((1, len(labels)))
        weights[0, fold] = 0
        kept = weights[0] > 0
        if not (labels & kept).any() or not (~labels & kept).any():
            return None
        threshold = weighted.best_threshold(labels[kept], scores[kept])(np.ones((1, int(kept.sum()))))[0]
        said[fold] = scores[fold] >= threshold
    return said


def _units(judged: LabelledScores) -> Rows:
    """The number of the unit that each row belongs to."""
    if judged.groups is None:
        return np.arange(len(judged.labels))
    return np.unique(np.asarray(judged.groups, dtype=object).astype(str), return_inverse=True)[1].astype(np.intp)


def _folds(labels: Floats, units: Rows, seed: int) -> list[Rows]:
    """Rows in FOLDS parts (fewer where there are fewer units), each with about the same labels."""
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
        for name, found in drawn.items():
            found.append(statistics[name](weights))
    return {name: Figure(values[name], _interval(found)) for name, found in drawn.items()}


def _resamples(units: Rows, seed: int) -> Iterator[Floats]:
    """How often each row is drawn, resample after resample, in batches."""
    count = int(units.max()) + 1
    if count < 2:
        return
    generator = np.random.default_rng([seed, zlib.crc32(b"calibration")])
    batch = max(1, _BATCH_CELLS // len(units))
    for start in range(0, RESAMPLES, batch):
        size = min(batch, RESAMPLES - start)
        yield generator.multinomial(count, np.full(count, 1 / count), size=size)[:, units].astype(np.float64)


def _interval(drawn: Sequence[Floats]) -> Interval | None:
    every = np.concatenate(drawn) if drawn else np.empty(0)
    known = every[np.isfinite(every)]
    if len(known) < max(2, len(every) / 2):
        return None
    low, high = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high))
