"""Statistics of how far scores and labels agree, each as a function of how often a row was drawn.

A bootstrap draws rows many times over; a matrix of how often, with a row a resample, gives the statistic of all
resamples at once. Weights of 1 give the statistic of the data. A statistic that is not defined is NaN here, inside;
what leaves `calibration` has no NaN.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Booleans: TypeAlias = NDArray[np.bool_]
Statistic: TypeAlias = Callable[[Floats], Floats]
"""Weights, a row a resample and a column a row of the data -> one number a resample."""

BINS = 10
"""Equal parts of [0, 1] in which probabilities are compared with labels."""


def confusion_counts(labels: Booleans, said: Booleans) -> Callable[[Floats], tuple[Floats, Floats, Floats, Floats]]:
    """True positives, false positives, false negatives and true negatives of each resample."""
    parts = [labels & said, ~labels & said, labels & ~said, ~labels & ~said]
    table = np.stack(parts, axis=1).astype(np.float64)

    def counted(weights: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        found = weights @ table
        return found[:, 0], found[:, 1], found[:, 2], found[:, 3]

    return counted


def agreement(labels: Booleans, said: Booleans) -> Statistic:
    """Share of rows on which both say the same.

    >>> agreement(np.array([True, False]), np.array([True, True]))(np.ones((1, 2)))
    array([0.5])
    """

    def statistic(weights: Floats) -> Floats:
        both, _, _, neither = confusion_counts(labels, said)(weights)
        return _ratio(both + neither, weights.sum(axis=1))

    return statistic


def kappa(labels: Booleans, said: Booleans) -> Statistic:
    """Cohen's kappa: agreement beyond chance; NaN where both give one label only."""

    def statistic(weights: Floats) -> Floats:
        both, only_said, only_label, neither = confusion_counts(labels, said)(weights)
        total = weights.sum(axis=1)
        chance = (both + only_said) * (both + only_label) + (neither + only_said) * (neither + only_label)
        return _ratio((both + neither) * total - chance, total**2 - chance)

    return statistic


def balanced_accuracy(labels: Booleans, said: Booleans) -> Statistic:
    """Mean of the shares of positives and of negatives that are told right; NaN without one of them."""

    def statistic(weights: Floats) -> Floats:
        both, only_said, only_label, neither = confusion_counts(labels, said)(weights)
        return (_ratio(both, both + only_label) + _ratio(neither, neither + only_said)) / 2

    return statistic


def auroc(labels: Booleans, scores: Floats) -> Statistic:
    """Probability that a positive row scores above a negative one, ties by half; NaN without one of them."""
    below = _Below(labels, scores)

    def statistic(weights: Floats) -> Floats:
        positives, negatives = below.of(weights)
        before = np.cumsum(negatives, axis=1) - negatives
        won = (positives * (before + negatives / 2)).sum(axis=1)
        return _ratio(won, positives.sum(axis=1) * negatives.sum(axis=1))

    return statistic


def best_threshold(labels: Booleans, scores: Floats) -> Statistic:
    """The threshold with the highest balanced accuracy, halfway between two scores; NaN without one of the classes.

    A row counts as positive from the threshold on. Of equally good thresholds it is the lowest.
    """
    below = _Below(labels, scores)
    cuts = np.concatenate([below.values[:1], (below.values[1:] + below.values[:-1]) / 2])

    def statistic(weights: Floats) -> Floats:
        positives, negatives = below.of(weights)
        missed = _shares(np.cumsum(positives, axis=1) - positives, positives)
        refused = _shares(np.cumsum(negatives, axis=1) - negatives, negatives)
        gain = refused - missed
        found: Floats = cuts[np.argmax(np.nan_to_num(gain, nan=-np.inf), axis=1)]
        return np.where(np.isnan(gain).any(axis=1), np.nan, found)

    return statistic


def mean_of(values: Floats) -> Statistic:
    """The mean: of squared differences the Brier score, of absolute ones the mean absolute error."""
    return lambda weights: (weights @ values) / weights.sum(axis=1)


def calibration_error(labels: Floats, probabilities: Floats) -> Statistic:
    """Expected calibration error: how far probabilities and labels differ on average in each of `BINS` bins.

    Source: Naeini et al., "Obtaining Well Calibrated Probabilities Using Bayesian Binning" (2015).
    """
    bins = np.minimum((probabilities * BINS).astype(np.intp), BINS - 1)
    differences = np.zeros((len(labels), BINS))
    differences[np.arange(len(labels)), bins] = probabilities - labels
    return lambda weights: np.abs(weights @ differences).sum(axis=1) / weights.sum(axis=1)


def spearman(labels: Floats, scores: Floats) -> Statistic:
    """Spearman's rank correlation; NaN where all labels or all scores are the same."""

    def one(left: Floats, right: Floats) -> float:
        from scipy.stats import rankdata  # noqa: PLC0415 scipy loads slowly

        return float(np.corrcoef(rankdata(left), rankdata(right))[0, 1])

    return _row_by_row(labels, scores, one)


def kendall(labels: Floats, scores: Floats) -> Statistic:
    """Kendall's tau-b; NaN as for Spearman."""

    def one(left: Floats, right: Floats) -> float:
        from scipy.stats import kendalltau  # noqa: PLC0415 scipy loads slowly

        return float(kendalltau(left, right).statistic)

    return _row_by_row(labels, scores, one)


class _Below:
    """The weight of positives and negatives at each distinct score, ascending."""

    def __init__(self, labels: Booleans, scores: Floats) -> None:
        self.values, place = np.unique(scores, return_inverse=True)
        self._order = np.argsort(place, kind="stable")
        self._starts = np.searchsorted(place[self._order], np.arange(len(self.values)))
        self._labels = labels[self._order].astype(np.float64)

    def of(self, weights: Floats) -> tuple[Floats, Floats]:
        ordered = weights[:, self._order]
        positives = np.add.reduceat(ordered * self._labels, self._starts, axis=1)
        return positives, np.add.reduceat(ordered, self._starts, axis=1) - positives


def _row_by_row(labels: Floats, scores: Floats, one: Callable[[Floats, Floats], float]) -> Statistic:
    def of_resample(weights: Floats) -> float:
        drawn = np.repeat(np.arange(len(labels)), weights.astype(np.intp))
        left, right = labels[drawn], scores[drawn]
        varied = len(drawn) > 1 and bool(np.ptp(left)) and bool(np.ptp(right))
        return one(left, right) if varied else float("nan")

    return lambda weights: np.array([of_resample(row) for row in weights])


def _shares(parts: Floats, whole: Floats) -> Floats:
    return _ratio(parts, np.broadcast_to(whole.sum(axis=1, keepdims=True), parts.shape))


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.asarray(np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole != 0))
