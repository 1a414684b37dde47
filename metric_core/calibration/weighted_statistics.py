"""Statistics of the agreement of scores and labels, as functions of row weights.

The weights of a bootstrap are the number of times that each row is drawn; a matrix with one resample per row gives the
statistic of all resamples at once. Weights of 1 give the statistic of the data. Undefined statistics are NaN; the
results of `calibration` contain none.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from metric_core.statistics.resampling import Floats

Booleans: TypeAlias = NDArray[np.bool_]
Statistic: TypeAlias = Callable[[Floats], Floats]
"""Function from weights (one row per resample, one column per row of the data) to one number per resample."""

BINS = 10
"""Number of equal parts of [0, 1] in which probabilities are compared with labels."""


def confusion_counts(
    labels: Booleans, predicted: Booleans
) -> Callable[[Floats], tuple[Floats, Floats, Floats, Floats]]:
    """Return a function that counts true positives, false positives, false negatives and true negatives."""
    parts = [labels & predicted, ~labels & predicted, labels & ~predicted, ~labels & ~predicted]
    table = np.stack(parts, axis=1).astype(np.float64)

    def count(weights: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        counts = weights @ table
        return counts[:, 0], counts[:, 1], counts[:, 2], counts[:, 3]

    return count


def agreement(labels: Booleans, predicted: Booleans) -> Statistic:
    """Return the share of rows on which judge and people agree, as a function of weights.

    >>> agreement(np.array([True, False]), np.array([True, True]))(np.ones((1, 2)))
    array([0.5])
    """

    def statistic(weights: Floats) -> Floats:
        both, _, _, neither = confusion_counts(labels, predicted)(weights)
        return _ratio(both + neither, weights.sum(axis=1))

    return statistic


def kappa(labels: Booleans, predicted: Booleans) -> Statistic:
    """Return Cohen's kappa, agreement beyond chance, as a function of weights; NaN if both give only one label."""

    def statistic(weights: Floats) -> Floats:
        both, judge_only, people_only, neither = confusion_counts(labels, predicted)(weights)
        total = weights.sum(axis=1)
        chance = (both + judge_only) * (both + people_only) + (neither + judge_only) * (neither + people_only)
        return _ratio((both + neither) * total - chance, total**2 - chance)

    return statistic


def balanced_accuracy(labels: Booleans, predicted: Booleans) -> Statistic:
    """Return the mean of sensitivity and specificity as a function of weights; NaN without positives or negatives."""

    def statistic(weights: Floats) -> Floats:
        both, judge_only, people_only, neither = confusion_counts(labels, predicted)(weights)
        return (_ratio(both, both + people_only) + _ratio(neither, neither + judge_only)) / 2

    return statistic


def auroc(labels: Booleans, scores: Floats) -> Statistic:
    """Return the AUROC as a function of weights; NaN without positives or negatives.

    It is the probability that a positive row scores above a negative one, with ties counted half.
    """
    classes = _ScoredClasses(labels, scores)

    def statistic(weights: Floats) -> Floats:
        positives, negatives = classes.sum_weights(weights)
        before = np.cumsum(negatives, axis=1) - negatives
        won = (positives * (before + negatives / 2)).sum(axis=1)
        return _ratio(won, positives.sum(axis=1) * negatives.sum(axis=1))

    return statistic


def best_threshold(labels: Booleans, scores: Floats) -> Statistic:
    """Return the threshold with the highest balanced accuracy as a function of weights.

    The threshold lies halfway between two scores; rows at or above it are positive. The lowest of equally good
    thresholds wins. NaN without positives or negatives.
    """
    classes = _ScoredClasses(labels, scores)
    cuts = np.concatenate([classes.values[:1], (classes.values[1:] + classes.values[:-1]) / 2])

    def statistic(weights: Floats) -> Floats:
        positives, negatives = classes.sum_weights(weights)
        missed = _shares(np.cumsum(positives, axis=1) - positives, positives)
        rejected = _shares(np.cumsum(negatives, axis=1) - negatives, negatives)
        gain = rejected - missed
        best: Floats = cuts[np.argmax(np.nan_to_num(gain, nan=-np.inf), axis=1)]
        return np.where(np.isnan(gain).any(axis=1), np.nan, best)

    return statistic


def mean_of(values: Floats) -> Statistic:
    """Return the mean of values, for example of squared differences (Brier score), as a function of weights."""
    return lambda weights: (weights @ values) / weights.sum(axis=1)


def calibration_error(labels: Floats, probabilities: Floats) -> Statistic:
    """Return the expected calibration error, over `BINS` bins of probabilities, as a function of weights.

    Source: Naeini et al., "Obtaining Well Calibrated Probabilities Using Bayesian Binning" (2015).
    """
    bins = np.minimum((probabilities * BINS).astype(np.intp), BINS - 1)
    differences = np.zeros((len(labels), BINS))
    differences[np.arange(len(labels)), bins] = probabilities - labels
    return lambda weights: np.abs(weights @ differences).sum(axis=1) / weights.sum(axis=1)


def spearman(labels: Floats, scores: Floats) -> Statistic:
    """Return Spearman's rank correlation as a function of weights; NaN if all labels or all scores are the same."""

    def correlate(left: Floats, right: Floats) -> float:
        from scipy.stats import rankdata  # noqa: PLC0415 scipy loads slowly

        return float(np.corrcoef(rankdata(left), rankdata(right))[0, 1])

    return _row_by_row(labels, scores, correlate)


def kendall(labels: Floats, scores: Floats) -> Statistic:
    """Return Kendall's tau-b as a function of weights; NaN if all labels or all scores are the same."""

    def correlate(left: Floats, right: Floats) -> float:
        from scipy.stats import kendalltau  # noqa: PLC0415 scipy loads slowly

        return float(kendalltau(left, right).statistic)

    return _row_by_row(labels, scores, correlate)


class _ScoredClasses:
    """Weights of positives and negatives at each distinct score, in ascending order."""

    def __init__(self, labels: Booleans, scores: Floats) -> None:
        self.values, place = np.unique(scores, return_inverse=True)
        self._order = np.argsort(place, kind="stable")
        self._starts = np.searchsorted(place[self._order], np.arange(len(self.values)))
        self._labels = labels[self._order].astype(np.float64)

    def sum_weights(self, weights: Floats) -> tuple[Floats, Floats]:
        ordered = weights[:, self._order]
        positives = np.add.reduceat(ordered * self._labels, self._starts, axis=1)
        return positives, np.add.reduceat(ordered, self._starts, axis=1) - positives


def _row_by_row(labels: Floats, scores: Floats, correlate: Callable[[Floats, Floats], float]) -> Statistic:
    def correlate_resample(weights: Floats) -> float:
        drawn = np.repeat(np.arange(len(labels)), weights.astype(np.intp))
        left, right = labels[drawn], scores[drawn]
        varied = len(drawn) > 1 and bool(np.ptp(left)) and bool(np.ptp(right))
        return correlate(left, right) if varied else float("nan")

    return lambda weights: np.array([correlate_resample(row) for row in weights])


def _shares(parts: Floats, whole: Floats) -> Floats:
    return _ratio(parts, np.broadcast_to(whole.sum(axis=1, keepdims=True), parts.shape))


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.asarray(np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole != 0))
