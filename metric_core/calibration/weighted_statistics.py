"""Statistics of the agreement of scores and labels, as functions of row weights.

A matrix with the weights of one resample per row gives the statistic of all resamples at once. Weights of 1 give the
statistic of the data. Undefined statistics are NaN; the results of `calibration` contain none.
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


Counts: TypeAlias = tuple[Floats, Floats, Floats, Floats]
"""Weights of the rows to which both say yes, only the judge, only people, and neither; one number per resample."""


def confusion_counts(labels: Booleans, predicted: Booleans) -> Callable[[Floats], Counts]:
    """Return a function from weights to the counts of rows by the answers of people and judge.

    Args:
        labels: Answers of people.
        predicted: Answers of the judge: one per row, or one per resample and row.
    """

    def count(weights: Floats) -> Counts:
        yes = weights * labels
        said, said_yes = (weights * predicted).sum(axis=1), (yes * predicted).sum(axis=1)
        people = yes.sum(axis=1)
        return said_yes, said - said_yes, people - said_yes, weights.sum(axis=1) - said - people + said_yes

    return count


def agreement_of(counts: Counts) -> Floats:
    """Return the share of rows on which judge and people agree."""
    both, _, _, neither = counts
    return _ratio(both + neither, sum(counts, np.zeros(len(both))))


def kappa_of(counts: Counts) -> Floats:
    """Return Cohen's kappa, agreement beyond chance; NaN if both give only one label."""
    both, judge_only, people_only, neither = counts
    total = both + judge_only + people_only + neither
    chance = (both + judge_only) * (both + people_only) + (neither + judge_only) * (neither + people_only)
    return _ratio((both + neither) * total - chance, total**2 - chance)


def balanced_accuracy_of(counts: Counts) -> Floats:
    """Return the mean of sensitivity and specificity; NaN without positives or negatives."""
    both, judge_only, people_only, neither = counts
    return (_ratio(both, both + people_only) + _ratio(neither, neither + judge_only)) / 2


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
    """Return the threshold with the highest kappa as a function of weights.

    The threshold lies halfway between two scores; rows at or above it are positive. The lowest of equally good
    thresholds wins. NaN without positives or negatives.
    """
    classes = _ScoredClasses(labels, scores)
    cuts = np.concatenate([classes.values[:1], (classes.values[1:] + classes.values[:-1]) / 2])

    def statistic(weights: Floats) -> Floats:
        positives, negatives = classes.sum_weights(weights)
        all_positives = positives.sum(axis=1, keepdims=True)
        missed = np.cumsum(positives, axis=1) - positives
        rejected = np.cumsum(negatives, axis=1) - negatives
        judge_only = negatives.sum(axis=1, keepdims=True) - rejected
        gain = kappa_of((all_positives - missed, judge_only, missed, rejected))
        best: Floats = cuts[np.argmax(np.nan_to_num(gain, nan=-np.inf), axis=1)]
        return np.where(np.isnan(gain).any(axis=1), np.nan, best)

    return statistic


def mean_of(values: Floats) -> Statistic:
    """Return the mean of values, for example of squared differences (Brier score), as a function of weights."""
    return lambda weights: (weights @ values) / weights.sum(axis=1)


def calibration_error(labels: Floats, probabilities: Floats, units: NDArray[np.intp]) -> float:
    """Return the calibration error: the root mean square difference of probabilities and labels, over `BINS` bins.

    The square of each bin's mean difference is estimated from products of different rows, which chance does not make
    larger, so that a judge whose probabilities are right has an error near 0 with few rows, too. NaN if no bin has two
    units.

    Source: Kumar, Liang and Ma, "Verified Uncertainty Calibration" (2019).

    Args:
        labels: Labels, from 0 to 1.
        probabilities: Probabilities, from 0 to 1.
        units: Number of each row's unit; products of rows of the same unit are left out.

    >>> calibration_error(np.array([1.0, 0.0, 1.0]), np.array([0.95, 0.95, 0.97]), np.arange(3))
    0.0
    """
    bins = np.minimum((probabilities * BINS).astype(np.intp), BINS - 1)
    count = int(units.max()) + 1
    rows, sums = (
        np.bincount(bins * count + units, weights=of, minlength=BINS * count).reshape(BINS, count)
        for of in (np.ones(len(labels)), probabilities - labels)
    )
    pairs = rows.sum(axis=1) ** 2 - (rows**2).sum(axis=1)
    products = sums.sum(axis=1) ** 2 - (sums**2).sum(axis=1)
    known = pairs > 0
    if not known.any():
        return float("nan")
    square = float((rows.sum(axis=1)[known] * products[known] / pairs[known]).sum() / rows[known].sum())
    return float(np.sqrt(max(0.0, square)))


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


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.asarray(np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole != 0))
