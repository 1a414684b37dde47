"""Estimate the mean label of a run from labels of a random sample, by prediction-powered inference.

The scores of all rows say what the labels cannot, and the labels correct the scores:

    mean label = weight * mean score of all rows + mean over labelled rows of (label - weight * score)

It is right whatever the judge does, as long as the labelled rows are a random sample; a better judge makes it more
precise. The weight is the one with the least variance (Angelopoulos, Duchi and Zrnic, "PPI++: Efficient
Prediction-Powered Inference", 2023), from other folds than the rows that it applies to, and shrunk to 0 where it is
uncertain: with a judge that knows nothing, labels alone remain. Rows count inversely to the probability with which
they were drawn. Groups of rows are units. Single claims are estimated in the same way: each is a row here, whose weight
is its part in the score of the row that it comes from.

With few labels, or few rows on which the judge errs, the normal approximation does not hold. Then the weight is 1, with
limits that hold for few rows and rare errors; or the labels are used alone, exactly, if that gives narrower limits.
Simulations that include this choice are in `benchmarks/coverage_labels.py`.
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
    NormalEstimate,
    RectifiedEstimate,
)
from metric_core.statistics.bounded_means import LEAST_UNITS, BoundedMean, Bounds, are_enough
from metric_core.statistics.resampling import LEVEL, SEED, Floats, Units, effective_number

LEAST_LABELS = 50
"""Number of labelled rows, or effective number of groups, below which labels are used alone."""
LEAST_EFFECTIVE = 10
"""Number of rows on which judge and people differ, or of labels of the rarer kind, below which it is so, too."""
_ROUNDING = 1e-12
"""Largest deviation that counts as a rounding error."""
FOLDS = 5
_SHARES = Bounds(0.0, 1.0)
_IN_FULL = "scores count in full, since "

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

    def influences(self, values: Floats) -> Floats:
        """Return the influence of each labelled row on the mean of their values: its deviation from it, by its share.

        Differences between strata are not random, since the number of rows of each is known, so that only deviations
        within a stratum count. Those of few rows from their own mean are too small, and are enlarged accordingly.

        Args:
            values: Value of each labelled row.
        """
        influences: Floats = self.shares * (values - self.shares @ values)
        if self.strata is None:
            return influences
        stratum = self.stratum()
        counts = np.bincount(stratum).astype(np.float64)
        within = influences - (_sum_by(stratum, influences) / counts)[stratum]
        enlarged = within * np.sqrt(counts / np.maximum(counts - 1, 1))[stratum]
        return np.where(counts[stratum] > 1, enlarged, influences)

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
        reason: Why labels are used alone, or the weight of the scores is 1; empty if the weight is the best one.
        labelled: Number of labelled rows.
        rows: Number of scored rows.
    """

    estimate: Estimate
    is_powered: bool
    reason: str
    labelled: int
    rows: int


def estimate_label_mean(sample: SampledLabels, seed: int = SEED) -> LabelMean:
    """Estimate the mean label of rows like those of a run from a random sample of its labels.

    Args:
        seed: Seed of the split into folds.

    >>> labels = np.array([1.0, 0.0] * 6 + [1.0, 1.0] * 24)
    >>> rows = [str(number) for number in range(400)]
    >>> scores = np.resize(labels * 0.8 + 0.1, 400)
    >>> sample = SampledLabels(rows, scores, np.append(labels, np.full(340, np.nan)))
    >>> found = estimate_label_mean(sample)
    >>> round(found.estimate.value, 3), found.reason
    (0.896, 'scores count in full, since nearly all labels are the same')
    """
    powered = _estimate_powered(sample, seed)
    reason = _weakness(sample, powered)
    labelled, rows = len(sample.labelled), len(sample.rows)
    if not reason:
        return LabelMean(powered.estimate(), True, "", labelled, rows)
    estimate = _narrower(sample, seed)
    is_powered = isinstance(estimate, RectifiedEstimate)
    return LabelMean(estimate, is_powered, f"{_IN_FULL}{reason}" if is_powered else reason, labelled, rows)


def estimate_label_difference(before: SampledLabels, after: SampledLabels, seed: int = SEED) -> LabelMean:
    """Estimate the difference of the mean labels of two runs that both have labels of a random sample.

    Rows (or groups) with the same name in both runs are pairs, labelled or not.

    Args:
        before: Scores and labels of the baseline.
        after: Scores and labels of the run.
        seed: Seed of the split into folds.
    """
    both = tuple(_estimate_powered(sample, seed) for sample in (before, after))
    reasons = [_weakness(sample, powered) for sample, powered in zip((before, after), both, strict=True)]
    labelled, rows = len(before.labelled) + len(after.labelled), len(before.rows) + len(after.rows)
    if reason := next(filter(None, reasons), ""):
        estimates = [
            _narrower(sample, seed) if weakness else powered.estimate()
            for sample, powered, weakness in zip((before, after), both, reasons, strict=True)
        ]
        is_powered = not any(isinstance(estimate, ExactEstimate) for estimate in estimates)
        difference = CombinedDifference.from_estimates(estimates[0], estimates[1])
        return LabelMean(difference, is_powered, f"{_IN_FULL}{reason}" if is_powered else reason, labelled, rows)
    names = np.unique(np.concatenate([powered.names for powered in both]))
    influence = np.zeros(len(names))
    for sign, powered in zip((-1.0, 1.0), both, strict=True):
        influence[np.searchsorted(names, powered.names)] += sign * powered.influence
    units = min(powered.units for powered in both)
    error = float(np.sqrt((influence**2).sum() * units / (units - 1) + both[0].between + both[1].between))
    value = both[1].value - both[0].value
    return LabelMean(NormalEstimate(value, error, units - 1, DIFFERENCE), True, "", labelled, rows)


@dataclass(frozen=True, slots=True)
class _Powered:
    """A prediction-powered estimate.

    Args:
        names: Names of the units, in ascending order.
        influence: Influence of each unit on the estimate.
        residual: The part of it that comes from the labels; it is 0 for units without.
        units: Number of labelled rows, or effective number of groups with labels.
        between: Variance from the sizes of strata, beyond that of the scores: other rows would have other strata.
    """

    value: float
    names: Names
    influence: Floats
    residual: Floats
    units: float
    between: float = 0.0

    def estimate(self) -> NormalEstimate:
        """Return the estimate with its standard error and degrees of freedom."""
        error = float(np.sqrt((self.influence**2).sum() * self.units / (self.units - 1) + self.between))
        return NormalEstimate(self.value, error, self.units - 1, SHARE)


def _estimate_powered(sample: SampledLabels, seed: int) -> _Powered:
    names, unit = sample.units()
    labelled, shares = sample.labelled, sample.shares
    scores, known, labels = sample.scores, sample.scores[labelled], sample.labels[labelled]
    at, count, parts = unit[labelled], len(names), sample.parts
    mean = float(parts @ scores) / len(scores)
    of_scores = _sum_by(unit, parts * (scores - mean) / len(scores), count)
    of_known = _sum_by(at, sample.influences(known), count)
    of_labels = _sum_by(at, sample.influences(labels), count)
    units = np.unique(at)
    fold = np.full(count, -1)
    fold[units[np.random.default_rng(seed).permutation(len(units))]] = np.arange(len(units)) % FOLDS
    weights = np.array([_best_weight(of_labels[fold != k], (of_scores - of_known)[fold != k]) for k in range(FOLDS)])
    weight_of_row = weights[fold[at]]
    weight = float(shares @ weight_of_row)
    errors = labels - weight_of_row * known
    residual = _sum_by(at, sample.influences(errors), count)
    value = weight * mean + float(shares @ errors)
    rows = np.bincount(np.unique(at, return_inverse=True)[1]).astype(np.float64)
    between = max(0.0, _between_strata(sample, of_scores) - weight**2 * float(of_scores @ of_scores))
    return _Powered(value, names, weight * of_scores + residual, residual, effective_number(rows), between)


def _between_strata(sample: SampledLabels, of_scores: Floats) -> float:
    """Return the variance that the mean label has because the shares of the strata are those of these rows.

    Args:
        of_scores: Influence of each unit on the mean score, which shows how rows of a group vary together.
    """
    if sample.strata is None:
        return 0.0
    shares, stratum, parts = sample.shares, sample.stratum(), sample.parts / len(sample.rows)
    labels, sizes = sample.labels[sample.labelled], _sum_by(stratum, shares)
    spread = float(sizes @ (_sum_by(stratum, shares * labels) / sizes - shares @ labels) ** 2)
    alone = parts * (sample.scores - float(parts @ sample.scores))
    together = float(of_scores @ of_scores) / float(alone @ alone) if alone.any() else 1.0
    return spread * float(parts @ parts) * max(1.0, together)


def _best_weight(labels: Floats, scores: Floats) -> float:
    """Return the weight w with the least sum of (labels + w * scores)², shrunk by its uncertainty; at least 0."""
    squares = float(scores @ scores)
    if squares <= 0:
        return 0.0
    weight = -float(labels @ scores) / squares
    if weight <= 0:
        return 0.0
    variance = float(((scores * (labels + weight * scores)) ** 2).sum()) / squares**2
    return weight * max(0.0, 1 - variance / weight**2)


def _weakness(sample: SampledLabels, powered: _Powered) -> str:
    """Return why a prediction-powered estimate would not hold, or not help; an empty text if it does."""
    if len(sample.labelled) == len(sample.rows):
        return "all scored rows are labelled"
    if powered.units < LEAST_LABELS:
        units = "rows" if sample.groups is None else "effective groups"
        return f"fewer than {LEAST_LABELS} {units} are labelled"
    labelled, shares = sample.labelled, sample.shares
    unit = sample.units()[1][labelled]
    labels = sample.labels[labelled]
    if _effective(_sum_by(unit, shares * (labels - shares @ labels))) < LEAST_EFFECTIVE:
        return "nearly all labels are the same"
    differences = _sum_by(unit, shares * (labels - sample.scores[labelled]))
    if min(map(_effective, (differences, powered.residual))) < LEAST_EFFECTIVE:
        return "judge and people differ on too few labelled rows"
    return ""


def _effective(values: Floats) -> float:
    """Return the number of equal values, the others being 0, whose sum would be as nearly normal."""
    values = np.where(np.abs(values) < _ROUNDING, 0.0, values)
    fourth = float((values**4).sum())
    return float((values**2).sum()) ** 2 / fourth if fourth > 0 else 0.0


def _narrower(sample: SampledLabels, seed: int) -> ExactEstimate | RectifiedEstimate:
    """Return the estimate from labels alone, or the one with weight 1 if its limits for decisions are narrower."""
    alone = _labels_alone(sample)
    rectified = None if len(sample.labelled) == len(sample.rows) else _rectified(sample, seed)
    if rectified is None:
        return alone
    limits, others = (estimate.strict_limits((1 - LEVEL) / 2) for estimate in (rectified, alone))
    return rectified if limits.high - limits.low < others.high - others.low else alone


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


def _rectified(sample: SampledLabels, seed: int) -> RectifiedEstimate | None:
    """Return the mean score of all rows plus the mean of label - score; None for too few rows or groups."""
    labelled, unit, shares = sample.labelled, sample.units()[1], sample.shares
    errors = sample.labels[labelled] - sample.scores[labelled]
    rectifier = _labelled_units(sample, errors)
    parts = sample.parts
    scores = Units(_sum_by(unit, parts * sample.scores), _sum_by(unit, parts))
    if not (are_enough(rectifier) and are_enough(scores)):
        return None
    # Labelled rows are in both means. A negative correlation of few rows is not known well enough to rely on it.
    first = _sum_by(unit, parts * (sample.scores - scores.mean) / len(unit))
    second = _sum_by(unit[labelled], shares * (errors - rectifier.mean), len(scores))
    scale = float(np.sqrt((first @ first) * (second @ second)))
    bounds = _SHARES.of_differences.around(rectifier.sums / rectifier.counts)
    return RectifiedEstimate(
        value=min(max(scores.mean + rectifier.mean, 0.0), 1.0),
        score=scores.mean,
        scores=BetaMean.from_units(scores, (0.0, 1.0)),
        rectifier=BoundedMean(rectifier, bounds, seed, "rectifier"),
        correlation=max(0.0, float(first @ second) / scale) if scale > _ROUNDING else 0.0,
        labels=_worth_of_strata(sample, errors, bounds),
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
