"""Measure the agreement of a judge with people, with bootstrap intervals, and fit a map of its probabilities.

The threshold above which a score counts as yes is evaluated on rows that it was not fitted to. Grouped rows are
resampled together and never split between fitting and evaluation.

Resamples give every row, or group of rows, a random weight (a Bayesian bootstrap), choose the threshold again, and add
pseudo-rows that speak for and against the judge: without them, a judge that was right on all rows would have a point as
its interval.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from metric_core.calibration import weighted_statistics as weighted
from metric_core.calibration.figure_intervals import correlation_interval, error_interval, quantile_interval
from metric_core.calibration.labels import Scale
from metric_core.calibration.platt import Predict, ProbabilityMap, Rows, fit_map
from metric_core.calibration.weighted_statistics import Booleans, Statistic
from metric_core.statistics.bounded_means import are_enough
from metric_core.statistics.resampling import LEVEL, SEED, Floats, Interval, Units

RESAMPLES = 1000
FOLDS = 5

FIGURES: dict[str, str] = {
    "auroc": "AUROC",
    "kappa": "Cohen's kappa",
    "spearman": "Spearman's correlation",
    "agreement": "agreement",
    "calibration_error": "calibration error",
}
"""Name of a figure -> title, in display order."""

_BATCH_CELLS = 4_000_000
_PSEUDO_ROW = 0.5
_LIGHT_ROW = 0.25


@dataclass(frozen=True, slots=True)
class LabelledScores:
    """Rows with labels by people and scores by a judge.

    Args:
        labels: 0 or 1; or grades, scaled to [0, 1] if `bounds` are known, else unscaled.
        bounds: Least and greatest score; None if the metric has no bounds.
        probabilities: Scores computed from the judge's probabilities instead of its verdicts, in [0, 1].
        predict: Function that computes such scores under a map of the probabilities; None if the judge gives none.
        groups: Group of each row; None if rows are independent.
        weights: Number of rows that each row represents, if rows were drawn with different probabilities; None if all
            are equal.
    """

    scale: Scale
    labels: Floats
    scores: Floats
    bounds: tuple[float, float] | None = None
    probabilities: Floats | None = None
    predict: Predict | None = None
    groups: Sequence[str] | None = None
    weights: Floats | None = None

    @property
    def row_weights(self) -> Floats:
        """Weight of each row; they are 1 on average."""
        if self.weights is None:
            return np.ones(len(self.labels))
        weights: Floats = self.weights / self.weights.mean()
        return weights


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with its 95 % bootstrap interval.

    That of a calibration error goes from 0 to a limit. It is None for too few rows or groups
    of rows, and if the figure is undefined for too many resamples.
    """

    value: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class HumanAgreement:
    """Agreement of a judge with people.

    Args:
        figures: Figures by name, see FIGURES; figures that are undefined for the data are missing.
        map: Map of the judge's probabilities, fitted to all rows.
    """

    figures: dict[str, Figure]
    map: ProbabilityMap | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Resamples:
    """Resamples of the rows, one per row of each array.

    Args:
        weights: Random weight of each row; rows of a group have the same.
        drawn: Number of times that each row is drawn, for statistics that need whole numbers.
        pseudo: Random weights of four pseudo-rows; each counts half a row.
        light: The same; each counts a quarter of a row.
    """

    weights: Floats
    drawn: Floats
    pseudo: Floats
    light: Floats


Resampled: TypeAlias = Callable[[_Resamples], Floats]
"""Function that computes a figure for every resample."""

_Answers: TypeAlias = Callable[[Floats], Booleans]
"""Function from weights to the judge's answers, one per resample and row."""


@dataclass(frozen=True, slots=True)
class _Measure:
    """A figure of the rows, and a function that computes it for resamples.

    Args:
        resampled: Function that returns the values for resamples; for an error, their distances from the data.
        is_correlation: True for a rank correlation; quantiles of resamples of few rows with ties lie too high.
        is_error: True for a calibration error.
    """

    value: float
    resampled: Resampled
    is_correlation: bool = False
    is_error: bool = False

    def interval(self, drawn: Sequence[Floats], units: Units, level: float) -> Interval | None:
        if self.is_correlation:
            return correlation_interval(self.value, drawn, units.effective, level)
        return error_interval(self.value, drawn, level) if self.is_error else quantile_interval(drawn, units, level)


def measure_human_agreement(judged: LabelledScores, seed: int = SEED, level: float = LEVEL) -> HumanAgreement:
    """Measure the agreement of a judge with people, and fit the map of its probabilities.

    Args:
        judged: Labels and scores of at least two rows.
        seed: Seed of resampling and of the split into folds.
        level: Confidence level of the intervals.

    >>> judged = LabelledScores(Scale.BINARY, np.array([0.0, 0, 1, 1]), np.array([0.1, 0.6, 0.4, 0.9]), (0, 1))
    >>> measure_human_agreement(judged).figures["auroc"].value
    0.75
    """
    units = _units(judged)
    fitted = None
    if judged.predict is not None and judged.probabilities is not None:
        fitted = fit_map(judged.labels, np.arange(len(judged.labels)), judged.predict)
    is_binary = judged.scale is Scale.BINARY
    measures = _binary_measures(judged, units, seed) if is_binary else _graded_measures(judged)
    if judged.probabilities is not None:
        measures["calibration_error"] = _measure_calibration(judged, judged.probabilities, units)
    figures = _figures(measures, units, judged.row_weights, seed, level)
    return HumanAgreement({name: figures[name] for name in FIGURES if name in figures}, fitted)


def _binary_measures(judged: LabelledScores, units: Rows, seed: int) -> dict[str, _Measure]:
    """Return AUROC, and kappa and agreement at the best threshold of the other folds.

    Resamples choose the threshold again. They leave rows out, since the choice varies more where rows are missing, and
    light pseudo-rows are enough.
    """
    labels, row_weights = judged.labels > 0.5, judged.row_weights
    measures = {"auroc": _measure_auroc(labels, judged.scores, row_weights)}
    predict = _predict_out_of_sample(labels, judged.scores, _folds(judged.labels, units, seed))
    if predict is None:
        return measures

    @lru_cache(maxsize=1)
    def count(resamples: _Resamples) -> weighted.Counts:
        counts = weighted.confusion_counts(labels, predict(resamples.drawn))(resamples.drawn)
        both, judge_only, people_only, neither = (
            part + pseudo for part, pseudo in zip(counts, resamples.light.T, strict=True)
        )
        return both, judge_only, people_only, neither

    observed = weighted.confusion_counts(labels, predict(row_weights[None]))(row_weights[None])
    for name, figure in {"kappa": weighted.kappa_of, "agreement": weighted.agreement_of}.items():
        measures[name] = _Measure(float(figure(observed)[0]), _after(count, figure))
    return measures


def _after(count: Callable[[_Resamples], weighted.Counts], figure: Callable[[weighted.Counts], Floats]) -> Resampled:
    return lambda resamples: figure(count(resamples))


def _measure_auroc(labels: Booleans, scores: Floats, row_weights: Floats) -> _Measure:
    """Return the AUROC, with pseudo-rows of both labels above and below all scores."""
    everyone = np.concatenate([labels, [True, True, False, False]])
    extended = weighted.auroc(everyone, np.concatenate([scores, [np.inf, -np.inf, np.inf, -np.inf]]))
    return _Measure(
        float(weighted.auroc(labels, scores)(row_weights[None])[0]),
        # With heavier pseudo-rows, the intervals of a judge without errors lie too low.
        lambda resamples: extended(np.hstack([resamples.weights, resamples.light])),
    )


def _measure_mean(values: Floats, row_weights: Floats) -> _Measure:
    """Return the mean of values from 0 to 1, with half a pseudo-row at 0 and half a one at 1."""
    extended = np.concatenate([values, [0.0, 1.0]])
    return _Measure(
        float(np.average(values, weights=row_weights)),
        lambda resamples: weighted.mean_of(extended)(np.hstack([resamples.weights, resamples.pseudo[:, :2]])),
    )


def _graded_measures(judged: LabelledScores) -> dict[str, _Measure]:
    ranked = weighted.spearman(judged.labels, judged.scores)
    value = float(ranked(judged.row_weights[None])[0])
    measures = {"spearman": _Measure(value, _of_drawn(ranked), is_correlation=True)}
    if judged.bounds is not None:
        agreed = 1 - np.abs(scale_to_unit(judged.scores, judged.bounds) - judged.labels)
        measures["agreement"] = _measure_mean(agreed, judged.row_weights)
    return measures


def _of_drawn(statistic: Statistic) -> Resampled:
    return lambda resamples: statistic(resamples.drawn)


def _measure_calibration(judged: LabelledScores, predicted: Floats, units: Rows) -> _Measure:
    error = weighted.calibration_error(judged.labels, predicted, units, judged.row_weights)
    deviation = weighted.calibration_deviation(judged.labels, predicted, judged.row_weights)
    return _Measure(error, _of_errors(deviation), is_error=True)


def _of_errors(deviation: Callable[[Floats, Floats], Floats]) -> Resampled:
    return lambda resamples: deviation(resamples.weights, np.add.reduceat(resamples.pseudo, [0, 2], axis=1))


def scale_to_unit(values: Floats, bounds: tuple[float, float]) -> Floats:
    """Scale values so that the bounds become 0 and 1.

    >>> scale_to_unit(np.array([1.0, 3.0]), (1.0, 5.0)).tolist()
    [0.0, 0.5]
    """
    return (values - bounds[0]) / (bounds[1] - bounds[0])


def _predict_out_of_sample(labels: Booleans, scores: Floats, folds: Sequence[Rows]) -> _Answers | None:
    """Return the judge's answers at the threshold of the other folds.

    None if the rows without a fold have one label only.
    """
    order = np.argsort(scores, kind="stable")
    parts = []
    for fold in folds:
        others = np.flatnonzero(~np.isin(order, fold))
        if len(np.unique(labels[order[others]])) < 2:
            return None
        parts.append((fold, others, weighted.best_threshold(labels[order[others]], scores[order[others]])))

    def predict(weights: Floats) -> Booleans:
        predicted = np.zeros(weights.shape, dtype=np.bool_)
        ordered = np.take(weights, order, axis=1)
        for fold, others, threshold in parts:
            predicted[:, fold] = scores[fold] >= threshold(np.take(ordered, others, axis=1))[:, None]
        return predicted

    return predict


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


def _figures(
    measures: Mapping[str, _Measure], units: Rows, row_weights: Floats, seed: int, level: float
) -> dict[str, Figure]:
    known = {name: measure for name, measure in measures.items() if np.isfinite(measure.value)}
    groups = Units(sizes := np.bincount(units).astype(np.float64), sizes)
    values: dict[str, list[Floats]] = {name: [] for name in known}
    for resamples in _resamples(units, row_weights, seed) if are_enough(groups) else ():
        for name, measure in known.items():
            values[name].append(measure.resampled(resamples))
    return {
        name: Figure(measure.value, measure.interval(values[name], groups, level)) for name, measure in known.items()
    }


def _resamples(units: Rows, row_weights: Floats, seed: int) -> Iterator[_Resamples]:
    """Yield batches of resamples."""
    count = int(units.max()) + 1
    generator = np.random.default_rng([seed, zlib.crc32(b"calibration")])
    size_of_unit = len(units) / count
    batch = max(1, _BATCH_CELLS // len(units))
    for start in range(0, RESAMPLES, batch):
        size = min(batch, RESAMPLES - start)
        drawn = generator.multinomial(count, np.full(count, 1 / count), size=size).astype(np.float64)
        weights = generator.standard_exponential((size, count))
        if not np.array_equal(units, np.arange(count)):
            drawn, weights = (np.take(of, units, axis=1) for of in (drawn, weights))
        pseudo, light = (generator.standard_gamma(rows, (size, 4)) * size_of_unit for rows in (_PSEUDO_ROW, _LIGHT_ROW))
        yield _Resamples(weights * row_weights, drawn * row_weights, pseudo, light)
