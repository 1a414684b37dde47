"""Estimate the mean label of a run from labels of a random sample, by prediction-powered inference.

    mean label = weight * mean score of all rows + mean over labelled rows of (label - weight * score)

It is right whatever the judge does, as long as the labelled rows are a random sample; a better judge makes it more
precise (Angelopoulos and others, "Prediction-powered inference", 2023). Scores have one of three fixed weights, 0, 1/2
and 1: the one with the narrowest limits for decisions. Rows count inversely to the probability with which they were
drawn. Groups of rows are units. Single claims are rows here, whose weight is their part in the score of their row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from metric_core.calibration.beta_means import BetaMean
from metric_core.calibration.estimates import (
    DIFFERENCE,
    SHARE,
    CombinedDifference,
    Estimate,
    ExactEstimate,
    RectifiedEstimate,
)
from metric_core.statistics.bounded_means import LEAST_UNITS, BoundedMean, Bounds, are_enough
from metric_core.statistics.resampling import LEVEL, SEED, Floats, Interval, Units

WEIGHTS = (0.5, 1.0)
"""Weights that scores may have."""
_ROUNDING = 1e-12
"""Largest deviation that counts as a rounding error."""
_SHARES = Bounds(0.0, 1.0)

Names: TypeAlias = NDArray[np.str_]


@dataclass(frozen=True, slots=True)
class SampledLabels:
    """The scored rows of a run, with labels of a random sample of them.

    Args:
        rows: Id of each row.
        scores: Score of each row, on the scale of the labels.
        labels: Label of each row, from 0 to 1; NaN if it has none. At least one row has a label.
        probabilities: Probability with which each row was drawn, up to a constant factor; None if all are equal.
        groups: Group of each row; None if rows are independent.
        strata: Stratum of each labelled row, if rows were drawn from each stratum separately; else None.
        weights: Weight of each row in the means of scores and labels; None if all are equal.
    """

    rows: Sequence[str]
    scores: Floats
    labels: Floats
    probabilities: Floats | None = None
    groups: Sequence[str] | None = None
    strata: Sequence[str | None] | None = None
    weights: Floats | None = None

    @property
    def labelled(self) -> NDArray[np.intp]:
        """Positions of the rows with a label."""
        return np.flatnonzero(np.isfinite(self.labels))

    @property
    def shares(self) -> Floats:
        """Weights of the labelled rows, which sum to 1."""
        labelled = self.labelled
        weights = np.ones(len(labelled)) if self.weights is None else self.weights[labelled]
        if self.probabilities is not None:
            weights = weights / self.probabilities[labelled]
        return weights / weights.sum() if np.ptp(weights) > 0 else np.full(len(labelled), 1 / len(labelled))

    @property
    def parts(self) -> Floats:
        """Weights of all rows, with a mean of 1."""
        return np.ones(len(self.rows)) if self.weights is None else self.weights / self.weights.mean()

    def stratum(self) -> NDArray[np.intp]:
        """Return the number of the stratum of each labelled row; 0 without strata."""
        names = ["" if self.strata is None else str(self.strata[row]) for row in self.labelled]
        return np.unique(names, return_inverse=True)[1].astype(np.intp)

    def units(self) -> tuple[Names, NDArray[np.intp]]:
        """Return the names of the units, rows or groups, and the unit of each row."""
        names = np.asarray(self.rows if self.groups is None else self.groups, dtype=object).astype(str)
        found, of_row = np.unique(names, return_inverse=True)
        return found, of_row.astype(np.intp)


@dataclass(frozen=True, slots=True)
class LabelMean:
    """The mean label of a run.

    Args:
        is_powered: True for a prediction-powered estimate, False for labels alone.
        labelled: Number of labelled rows.
        rows: Number of scored rows.
    """

    estimate: Estimate
    is_powered: bool
    labelled: int
    rows: int


def estimate_label_mean(sample: SampledLabels, seed: int = SEED) -> LabelMean:
    """Estimate the mean label of rows like those of a run from a random sample of its labels.

    Args:
        seed: Seed of the draws of limits.

    >>> labels = np.array([1.0, 0.0] * 6 + [1.0, 1.0] * 24)
    >>> rows = [str(number) for number in range(400)]
    >>> scores = np.resize(labels * 0.8 + 0.1, 400)
    >>> sample = SampledLabels(rows, scores, np.append(labels, np.full(340, np.nan)))
    >>> found = estimate_label_mean(sample)
    >>> round(found.estimate.value, 3), found.is_powered
    (0.898, True)
    """
    estimate = _narrowest(sample, seed)
    return LabelMean(estimate, isinstance(estimate, RectifiedEstimate), len(sample.labelled), len(sample.rows))


def estimate_label_difference(before: SampledLabels, after: SampledLabels, seed: int = SEED) -> LabelMean:
    """Estimate the difference of the mean labels of two runs that both have labels of a random sample.

    Rows with the same name in both runs are pairs. Where the differences of those that are labelled in both runs have
    narrower limits than the two runs apart, they count.

    Args:
        before: Scores and labels of the baseline.
        after: Scores and labels of the run.
        seed: Seed of the draws of limits.
    """
    labelled, rows = len(before.labelled) + len(after.labelled), len(before.rows) + len(after.rows)
    both = [_narrowest(sample, seed) for sample in (before, after)]
    apart = CombinedDifference.from_estimates(both[0], both[1])
    found: list[tuple[Estimate, bool]] = [(apart, any(isinstance(each, RectifiedEstimate) for each in both))]
    if (pairs := _pairs(before, after)) is not None:
        paired = ((_rectified(pairs, weight, seed, DIFFERENCE), weight > 0) for weight in (0.0, *WEIGHTS))
        found += [(each, is_powered) for each, is_powered in paired if each is not None]
    estimate, is_powered = min(found, key=lambda each: _width(each[0]))
    return LabelMean(estimate, is_powered, labelled, rows)


def _pairs(before: SampledLabels, after: SampledLabels) -> SampledLabels | None:
    """Return the differences of the rows that both runs have; None if rows were drawn with different probabilities."""
    if any(part is not None for run in (before, after) for part in (run.probabilities, run.weights, run.strata)):
        return None
    place = {row: at for at, row in enumerate(before.rows)}
    common = [(place[row], at) for at, row in enumerate(after.rows) if row in place]
    first, second = np.array(common, dtype=np.intp).reshape(-1, 2).T
    labels = after.labels[second] - before.labels[first]
    if not np.isfinite(labels).any():
        return None
    groups = None if after.groups is None else [after.groups[at] for at in second]
    rows = [after.rows[at] for at in second]
    return SampledLabels(rows, after.scores[second] - before.scores[first], labels, groups=groups)


def _narrowest(sample: SampledLabels, seed: int) -> ExactEstimate | RectifiedEstimate:
    """Return the estimate with the narrowest limits for decisions: by labels alone, or with scores of a weight."""
    found: list[ExactEstimate | RectifiedEstimate] = [_labels_alone(sample)]
    if len(sample.labelled) < len(sample.rows):
        rectified = (_rectified(sample, weight, seed, SHARE) for weight in WEIGHTS)
        found += [each for each in rectified if each is not None]
    return min(found, key=_width)


def _width(estimate: Estimate) -> float:
    limits = estimate.strict_limits((1 - LEVEL) / 2)
    return limits.high - limits.low


def _labels_alone(sample: SampledLabels) -> ExactEstimate:
    labels = sample.labels[sample.labelled]
    units = _labelled_units(sample, labels)
    if not are_enough(units):
        return ExactEstimate(units.mean, None)
    worth = _worth_of_strata(sample, labels, _SHARES)
    return ExactEstimate(units.mean, BetaMean.from_units(units, (0.0, 1.0)).strengthen(worth))


def _worth_of_strata(sample: SampledLabels, values: Floats, bounds: Bounds) -> float:
    """Return the number of labels drawn from all rows at once that are worth as much as one drawn from strata.

    The means of strata are certain but for their labels; how many rows of the run belong to each is as random as the
    run's rows are. Each stratum has pseudo-rows at both bounds: labels that are all alike do not count as proof.

    Args:
        values: Value of each labelled row.

    Returns:
        The number, at least 1. It is 1 without strata, if one has fewer than `LEAST_UNITS` labels, and if several
        labelled rows belong to one group.
    """
    units = _labelled_units(sample, values)
    if sample.strata is None or len(units) < len(values):
        return 1.0
    ends, shares = (bounds.low, bounds.high), sample.shares
    stratum = sample.stratum()
    sizes = np.bincount(stratum)
    if sizes.min() < LEAST_UNITS:
        return 1.0
    weights, sums = (np.bincount(stratum, weights=each) for each in (shares, shares * values))
    beliefs = [BetaMean.from_units(Units.from_values(values[stratum == part]), ends) for part in range(len(sizes))]
    within = weights**2 @ np.array([belief.variance for belief in beliefs])
    between = weights @ (sums / weights - sums.sum()) ** 2
    return max(1.0, BetaMean.from_units(units, ends).variance / float(within + between / len(sample.rows)))


def _rectified(sample: SampledLabels, weight: float, seed: int, within: Interval) -> RectifiedEstimate | None:
    """Return weight * the mean score of all rows plus the mean of label - weight * score.

    Args:
        within: Least and greatest label, and score.

    Returns:
        The estimate; None for too few rows or groups.
    """
    labelled, unit, shares = sample.labelled, sample.units()[1], sample.shares
    weighted = weight * sample.scores
    errors = sample.labels[labelled] - weighted[labelled]
    rectifier = _labelled_units(sample, errors)
    parts = sample.parts
    scores = Units(_sum_by(unit, parts * weighted), _sum_by(unit, parts))
    if not (are_enough(rectifier) and are_enough(scores)):
        return None
    # Labelled rows are in both means. A negative correlation of few rows is not known well enough to rely on it.
    first = _sum_by(unit, parts * (weighted - scores.mean) / len(unit))
    second = _sum_by(unit[labelled], shares * (errors - rectifier.mean), len(scores))
    scale = float(np.sqrt((first @ first) * (second @ second)))
    ends = (weight * within.low, weight * within.high)
    bounds = Bounds(within.low - ends[1], within.high - ends[0]).around(rectifier.sums / rectifier.counts)
    return RectifiedEstimate(
        value=min(max(scores.mean + rectifier.mean, within.low), within.high),
        score=scores.mean,
        scores=BetaMean.from_units(scores, ends if weight else (within.low, within.high)),
        rectifier=BoundedMean(rectifier, bounds, seed, "rectifier"),
        correlation=max(0.0, float(first @ second) / scale) if scale > _ROUNDING else 0.0,
        labels=_worth_of_strata(sample, errors, bounds),
        within=within,
    )


def _labelled_units(sample: SampledLabels, values: Floats) -> Units:
    """Return the labelled rows with a value each as units, in which rows count by their weights."""
    labelled, shares = sample.labelled, sample.shares
    weights = shares * len(labelled) if np.ptp(shares) > 0 else np.ones(len(labelled))
    of_row = np.unique(sample.units()[1][labelled], return_inverse=True)[1]
    return Units(_sum_by(of_row, weights * values), _sum_by(of_row, weights))


def _sum_by(unit: NDArray[np.intp], values: Floats, units: int = 0) -> Floats:
    """Return the sum of the values of each unit."""
    return np.bincount(unit, weights=values, minlength=units).astype(np.float64)
