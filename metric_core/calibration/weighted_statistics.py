"""Compute statistics of the agreement of scores and labels as functions of row weights.

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


_CACHED_CELLS = 32_768

Counts: TypeAlias = tuple[Floats, Floats, Floats, Floats]
"""Weights of the rows to which both say yes, only the judge, only people, and neither; one number per resample."""


def confusion_counts(labels: Booleans, predicted: Booleans) -> Callable[[Floats], Counts]:
    """Return a function from weights to the counts of rows by the answers of people and judge.

    Args:
        labels: Answers of people.
        predicted: Answers of the judge: one per row, or one per resample and row.
    """
    yes = labels.astype(np.float64)

    def count(weights: Floats) -> Counts:
        agreed = weights * predicted
        said, said_yes, people = agreed.sum(axis=1), agreed @ yes, weights @ yes
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


def auroc(labels: Booleans, scores: Floats) -> Statistic:
    """Return the AUROC as a function of weights; NaN without positives or negatives.

    It is the probability that a positive row scores above a negative one, with ties counted half.
    """
    classes = _ScoredClasses(labels, scores)

    @_in_parts
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

    @_in_parts
    def statistic(weights: Floats) -> Floats:
        positives, negatives = classes.sum_weights(weights)
        up_to = [np.cumsum(of, axis=1) for of in (positives, negatives)]
        yes, no = (of[:, -1:] for of in up_to)
        missed, rejected = up_to[0] - positives, up_to[1] - negatives
        # Kappa is twice (yes * rejected - no * missed) / chance.
        chance = (missed + rejected) * (yes - no) + (yes + no) * no
        gain = np.divide(yes * rejected - no * missed, chance, out=np.zeros_like(chance), where=chance != 0)
        best: Floats = cuts[np.argmax(gain, axis=1)]
        return np.where((chance == 0).any(axis=1), np.nan, best)

    return statistic


def mean_of(values: Floats) -> Statistic:
    """Return the mean of values, for example of squared differences (Brier score), as a function of weights."""
    return lambda weights: (weights @ values) / weights.sum(axis=1)


def calibration_error(
    labels: Floats, probabilities: Floats, units: NDArray[np.intp], weights: Floats | None = None
) -> float:
    """Return the calibration error: the root mean square difference of probabilities and labels, over `BINS` bins.

    The square of each bin's mean difference is estimated from products of different rows, which chance does not make
    larger, so that a judge whose probabilities are right has an error near 0 with few rows, too. NaN if no bin has two
    units.

    Source: Kumar, Liang and Ma, "Verified Uncertainty Calibration" (2019).

    Args:
        labels: Labels, from 0 to 1.
        probabilities: Probabilities, from 0 to 1.
        units: Number of each row's unit; products of rows of the same unit are left out.
        weights: Weight of each row; None if all are equal.

    >>> calibration_error(np.array([1.0, 0.0, 1.0]), np.array([0.95, 0.95, 0.97]), np.arange(3))
    0.0
    """
    bins = np.minimum((probabilities * BINS).astype(np.intp), BINS - 1)
    count = int(units.max()) + 1
    weight = np.ones(len(labels)) if weights is None else weights
    rows, sums = (
        np.bincount(bins * count + units, weights=of, minlength=BINS * count).reshape(BINS, count)
        for of in (weight, weight * (probabilities - labels))
    )
    pairs = rows.sum(axis=1) ** 2 - (rows**2).sum(axis=1)
    products = sums.sum(axis=1) ** 2 - (sums**2).sum(axis=1)
    known = pairs > 0
    if not known.any():
        return float("nan")
    square = float((rows.sum(axis=1)[known] * products[known] / pairs[known]).sum() / rows[known].sum())
    return float(np.sqrt(max(0.0, square)))


def calibration_deviation(
    labels: Floats, probabilities: Floats, weights: Floats | None = None
) -> Callable[[Floats, Floats], Floats]:
    """Return how far resamples lie from the data: the root mean square change of the mean difference in each bin.

    The calibration error is at most that of the data plus this distance. It is a function of the weights of resamples
    and of pseudo-rows with label 0 and 1, which are divided among the bins: bins in which rare errors were not seen
    may have them.

    Args:
        labels: Labels, from 0 to 1.
        probabilities: Probabilities, from 0 to 1.
        weights: Weight of each row of the data; None if all are equal.
    """
    bins = np.minimum((probabilities * BINS).astype(np.intp), BINS - 1)
    members = np.eye(BINS)[:, np.unique(bins)][bins]
    weight = np.ones(len(labels)) if weights is None else weights
    rows = weight @ members
    shares = rows / rows.sum()
    differences = members * (probabilities - labels)[:, None]
    observed, at_zero = (weight @ differences) / rows, (weight @ (members * probabilities[:, None])) / rows

    def deviation(resampled: Floats, pseudo: Floats) -> Floats:
        added = pseudo[:, :1] * at_zero + pseudo[:, 1:] * (at_zero - 1)
        counts = resampled @ members + pseudo.sum(axis=1, keepdims=True) * shares
        changes = (resampled @ differences + added * shares) / counts - observed
        distances: Floats = np.sqrt(changes**2 @ shares)
        return distances

    return deviation


def spearman(labels: Floats, scores: Floats) -> Statistic:
    """Return Spearman's rank correlation as a function of weights; NaN if all labels or all scores are the same.

    A row of weight 2 counts as two equal rows.
    """
    sums_of_labels, sums_of_scores = _SumsByValue(labels), _SumsByValue(scores)

    def statistic(weights: Floats) -> Floats:
        ranks = []
        for of_values in (sums_of_labels, sums_of_scores):
            rank = of_values.ranks(weights)
            ranks.append(rank - (weights * rank).sum(axis=1, keepdims=True) / weights.sum(axis=1, keepdims=True))
        left, right = ranks
        squares = (weights * left**2).sum(axis=1) * (weights * right**2).sum(axis=1)
        return _correlation((weights * left * right).sum(axis=1), squares, weights.sum(axis=1) ** 6)

    return statistic


def _in_parts(statistic: Statistic) -> Statistic:
    """Return the same function, computed for few resamples at a time: what lies in the processor's cache is faster."""

    def in_parts(weights: Floats) -> Floats:
        rows = max(1, _CACHED_CELLS // weights.shape[1])
        return np.concatenate([statistic(weights[start : start + rows]) for start in range(0, len(weights), rows)])

    return in_parts


class _SumsByValue:
    """Sums of weights at each distinct value, in ascending order."""

    def __init__(self, values: Floats) -> None:
        self.values, self._place = np.unique(values, return_inverse=True)
        self._order = np.argsort(self._place, kind="stable")
        self._is_sorted = bool((np.diff(self._place) >= 0).all())
        self._starts = np.searchsorted(self._place[self._order], np.arange(len(self.values)))

    def sort(self, weights: Floats) -> Floats:
        """Return the columns in the order of the values."""
        return weights if self._is_sorted else np.take(weights, self._order, axis=1)

    def sum_sorted(self, weights: Floats) -> Floats:
        """Return the sums of sorted columns."""
        return weights if len(self._starts) == len(self._order) else np.add.reduceat(weights, self._starts, axis=1)

    def sum(self, weights: Floats) -> Floats:
        return self.sum_sorted(self.sort(weights))

    def ranks(self, weights: Floats) -> Floats:
        """Return the rank of each row; equal rows share the middle one."""
        sums = self.sum(weights)
        return (np.cumsum(sums, axis=1) - sums / 2)[:, self._place]


class _ScoredClasses:
    """Weights of positives and negatives at each distinct score, in ascending order."""

    def __init__(self, labels: Booleans, scores: Floats) -> None:
        self._by_score = _SumsByValue(scores)
        self.values = self._by_score.values
        self._labels = self._by_score.sort(labels.astype(np.float64)[None])

    def sum_weights(self, weights: Floats) -> tuple[Floats, Floats]:
        ordered = self._by_score.sort(weights)
        positives = self._by_score.sum_sorted(ordered * self._labels)
        return positives, self._by_score.sum_sorted(ordered) - positives


def _correlation(products: Floats, squares: Floats, scale: Floats) -> Floats:
    """Return products / sqrt(squares); NaN where the squares are 0 up to rounding, measured by their scale."""
    is_known = squares > 1e-12 * scale
    found = products / np.sqrt(np.where(is_known, squares, 1.0))
    return np.where(is_known, np.clip(found, -1.0, 1.0), np.nan)


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.asarray(np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole != 0))
