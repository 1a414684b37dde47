"""Compare judges on the same labelled rows: agreement with people, paired differences, and errors in common.

The agreement of a row is 1 if the judge decides as people did and 0 if not; a score from the middle on means yes. For
grades it is 1 less the distance of score and grade, both on [0, 1]. Judges are compared row by row, so what makes a row
hard for all of them does not widen the interval of their difference.

A judge counts as not worse if rows show it of its difference from each of the others: whichever is best in truth is one
of them, so it does not matter that the best on these rows was chosen by their labels. Several judges are tested with
the thresholds of Holm (1979), as Shaffer (1986) sharpens them: of k judges at most k - 1 are worse than the best.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from metric_core.calibration.labels import Scale
from metric_core.statistics.bounded_means import LEAST_UNITS, BoundedMean, Bounds, estimate_interval
from metric_core.statistics.resampling import SEED, Floats, Interval, Units

MIDDLE = 0.5
"""Score from which on a judge says yes."""

ERROR_RATE = 0.05
"""Largest probability that any judge counts as not worse which is worse than the best by at least the margin."""

FAR = 0.25
"""Distance from the grade, as a share of the range of grades, from which on a score is an error."""


@dataclass(frozen=True, slots=True)
class LabelledRows:
    """Rows with labels by people and the scores of several judges. Labels and scores are in [0, 1].

    Args:
        scores: Mapping from the name of each judge to its score of each row.
        groups: Group of each row; None if rows are independent.
        weights: Number of rows that each row represents, up to a constant factor; None if all are equal.
    """

    scale: Scale
    labels: Floats
    scores: Mapping[str, Floats]
    groups: Sequence[str] | None = None
    weights: Floats | None = None

    def units(self, values: Floats) -> Units:
        """Return the values of rows as units, in which rows count by their weights."""
        if self.weights is None:
            return Units.from_values(values, self.groups)
        weights = self.weights / self.weights.mean()
        sums, counts = (Units.from_values(each, self.groups).sums for each in (values * weights, weights))
        return Units(sums, counts)

    def agreements(self, judge: str) -> Floats:
        """Return the agreement of a judge with people on each row, in [0, 1]."""
        scores = self.scores[judge]
        said = (scores >= MIDDLE).astype(np.float64) if self.scale is Scale.BINARY else scores
        found: Floats = 1.0 - np.abs(said - self.labels)
        return found

    def errors(self, judge: str) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Return for each row whether a judge errs: decides differently than people, or is far from their grade."""
        limit = 0.5 if self.scale is Scale.BINARY else FAR
        return 1.0 - self.agreements(judge) > limit


@dataclass(frozen=True, slots=True)
class ComparedJudge:
    """The agreement of a judge with people, and its difference from the judge that agrees most.

    Args:
        agreement: Mean agreement over the rows, in [0, 1].
        interval: Its 95 % interval; None for too few rows.
        difference: Agreement less that of the judge that agrees most, in [-1, 0].
        difference_interval: 95 % interval of the difference of the same rows; None for that judge, or too few rows.
        errors: Number of rows that it judges wrongly.
        is_not_worse: True if the rows show that it is not worse than any of the others by the margin or more; see
            `find_not_worse`.
    """

    name: str
    agreement: float
    interval: Interval | None
    difference: float
    difference_interval: Interval | None
    errors: int
    is_not_worse: bool


@dataclass(frozen=True, slots=True)
class ErrorOverlap:
    """The rows that two judges judge wrongly.

    Args:
        both: Number of rows that both judge wrongly.
        only_first: Number of rows that only the first judges wrongly.
        only_second: Number of rows that only the second judges wrongly.
    """

    first: str
    second: str
    both: int
    only_first: int
    only_second: int


@dataclass(frozen=True, slots=True)
class JudgeComparison:
    """Judges compared on the same labelled rows.

    Args:
        rows: Number of rows that all of them scored.
        margin: Difference of agreement that does not matter.
        judges: Judges, the one that agrees most first.
        overlaps: Errors of each pair of judges.
        wrong_for_all: Number of rows that all judge wrongly; their labels deserve a second look.
    """

    rows: int
    margin: float
    judges: tuple[ComparedJudge, ...]
    overlaps: tuple[ErrorOverlap, ...]
    wrong_for_all: int

    def cheapest(self, costs: Mapping[str, float | None]) -> str | None:
        """Return the cheapest judge that is not worse than the best by more than the margin.

        Args:
            costs: Cost of each judge, in one unit; None if it is not known.

        Returns:
            Name of the judge; None if there is none, or if there are several and the cost of one is not known.
        """
        able = [judge.name for judge in self.judges if judge.is_not_worse]
        if len(able) == 1:
            return able[0]
        known = [(cost, place, name) for place, name in enumerate(able) if (cost := costs.get(name)) is not None]
        return min(known)[2] if known and len(known) == len(able) else None


def compare_judges(rows: LabelledRows, margin: float, seed: int = SEED) -> JudgeComparison:
    """Compare judges on the same labelled rows.

    Args:
        margin: Difference of agreement that does not matter, in [0, 1].

    >>> labels = np.array([1.0, 0.0] * 20)
    >>> good, same, bad = labels, np.where(labels > 0, 0.9, 0.2), 1 - labels
    >>> found = compare_judges(LabelledRows(Scale.BINARY, labels, {"good": good, "same": same, "bad": bad}), 0.1)
    >>> [(judge.name, judge.agreement, judge.is_not_worse) for judge in found.judges]
    [('good', 1.0, True), ('same', 1.0, True), ('bad', 0.0, False)]
    >>> found.cheapest({"good": 2.0, "same": 1.0, "bad": 0.0})
    'same'
    """
    agreements = {name: rows.agreements(name) for name in rows.scores}
    means = {name: rows.units(found).mean for name, found in agreements.items()}
    order = sorted(means, key=lambda name: -means[name])
    best = order[0]
    able = find_not_worse(rows, margin, seed)
    judges = []
    for name in order:
        own = estimate_interval(rows.units(agreements[name]), Bounds(0.0, 1.0), seed, name)
        units = rows.units(agreements[name] - agreements[best])
        interval = None if name == best else estimate_interval(units, Bounds(-1.0, 1.0), seed, f"{name} less {best}")
        judges.append(
            ComparedJudge(
                name, means[name], own, units.mean, interval, int(rows.errors(name).sum()), is_not_worse=name in able
            )
        )
    errors = {name: rows.errors(name) for name in order}
    overlaps = tuple(
        ErrorOverlap(
            first,
            second,
            int((errors[first] & errors[second]).sum()),
            int((errors[first] & ~errors[second]).sum()),
            int((~errors[first] & errors[second]).sum()),
        )
        for first, second in combinations(order, 2)
    )
    wrong = int(np.logical_and.reduce([errors[name] for name in order]).sum())
    return JudgeComparison(len(rows.labels), margin, tuple(judges), overlaps, wrong)


def find_not_worse(rows: LabelledRows, margin: float, seed: int = SEED) -> frozenset[str]:
    """Return the judges that are non-inferior to every other, within the margin.

    The probability that one of them is worse than the best by at least the margin is at most `ERROR_RATE`.

    Args:
        margin: Difference of agreement that does not matter, in [0, 1].

    >>> labels = np.array([1.0, 0.0] * 20)
    >>> scores = {"large": labels, "small": labels, "poor": 1 - labels}
    >>> sorted(find_not_worse(LabelledRows(Scale.BINARY, labels, scores), 0.1))
    ['large', 'small']
    """
    agreements = {name: rows.agreements(name) for name in rows.scores}

    def p_worse(name: str, other: str) -> float:
        units = rows.units(agreements[name] - agreements[other])
        if units.effective < LEAST_UNITS:
            return 1.0
        return BoundedMean(units, Bounds(-1.0, 1.0), seed, f"{name} less {other}").p_at_most(-margin)

    p_values = {name: max(p_worse(name, other) for other in agreements if other != name) for name in agreements}
    found = []
    for position, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        most_worse = min(len(p_values) - 1, len(p_values) - position)  # the best is not worse than itself
        if p_values[name] > ERROR_RATE / most_worse:
            break
        found.append(name)
    return frozenset(found)
