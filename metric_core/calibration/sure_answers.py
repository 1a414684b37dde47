"""Find out from labels how sure a judge must be, so that people seldom disagree with its answers.

Thresholds are tested from the strictest to the loosest, until one fails (fixed-sequence testing, as in Learn Then Test;
Angelopoulos, Bates, Candès, Jordan and Lei 2021). A threshold passes if the upper limit of the share of disagreements
above it is at most the accepted share: the limit of Clopper and Pearson, or that of groups. So the last one that passes
holds with the confidence of a single limit. The thresholds are quantiles of all verdicts, and the first one is found
from the number of labels alone: neither depends on what people said. Labels must be a uniform sample of the verdicts,
or of the surest ones: labels of the surest half let a judge answer more.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metric_core.statistics.bounded_means import LEAST_UNITS, BoundedMean, Bounds, are_enough
from metric_core.statistics.resampling import LEVEL, SEED, Floats, Units, effective_number

SHARES = np.arange(1, 21) / 20
"""Shares of the verdicts above the thresholds that are tested."""
_UNIT = Bounds(0.0, 1.0)
_MOST_TIMES = 256
"""Multiple of the labels above which no number is given."""
_STEP = 1.05


@dataclass(frozen=True, slots=True)
class SurePoint:
    """The answers of a judge that is at least so sure.

    Args:
        least: Least probability of the judge's own label.
        share: Share of all verdicts, from 0 to 1.
        labels: Number of these verdicts that people have labelled.
        wrong: Number of these on which people disagree.
        limit: Upper limit of the share on which they do, with a confidence of 95 %.
    """

    least: float
    share: float
    labels: int
    wrong: int
    limit: float


@dataclass(frozen=True, slots=True)
class SureAnswers:
    """Labels of the answers of a judge, by how sure it is.

    Args:
        verdicts: Number of verdicts that labels were drawn from.
        labels: Number of labels of the verdicts that they were drawn from.
        units: Effective number of the groups of labels; of labels, if they are independent.
        points: The strictest first.
        tail: Probability with which a limit may be wrong, see `tail_of_look`.
        covered: Share of the verdicts that labels were drawn from.
    """

    verdicts: int
    labels: int
    units: float
    points: tuple[SurePoint, ...]
    tail: float = 1 - LEVEL
    covered: float = 1.0

    def choose(self, most: float) -> SurePoint | None:
        """Return the loosest point at which people disagree with at most so many answers; None without one.

        Args:
            most: Accepted share of answers that people disagree with, in (0, 1).
        """
        found, least = None, least_labels(most, self.tail)
        for point in self.points:
            if point.share * self.units < least * self.covered:
                continue
            if point.limit > most:
                break
            found = point
        return found

    def labels_needed(self, most: float) -> int | None:
        """Return about how many labels like these would let the judge answer something; None if no number would.

        Args:
            most: Accepted share of answers that people disagree with, in (0, 1).
        """
        from scipy.special import betaincinv  # noqa: PLC0415 scipy loads slowly

        found = []
        for point in self.points:
            share = (point.wrong + 0.5) / (point.labels + 1)
            number = float(least_labels(most, self.tail))
            if point.labels < LEAST_UNITS or share >= most:
                continue
            while betaincinv(share * number + 1, (1 - share) * number, 1 - self.tail) > most:
                number *= _STEP
            found.append(number * self.covered / point.share * self.labels / self.units)
        needed = math.ceil(min(found, default=math.inf)) if found else None
        return None if needed is None or needed > _MOST_TIMES * self.labels else needed


def measure_sure_answers(
    sureness: Floats,
    wrong: Floats,
    groups: Sequence[str] | None = None,
    tail: float = 1 - LEVEL,
    least_sureness: float = 0.0,
) -> SureAnswers:
    """Return what labels say of the answers of a judge, by how sure it is.

    Args:
        sureness: The judge's probability of its own label for each verdict; 0 where it gave none.
        wrong: 1 where people disagree with it, 0 where they agree, NaN where they gave no label.
        groups: Group of each verdict; None if verdicts are independent.
        tail: Probability with which a limit may be wrong, see `tail_of_look`.
        least_sureness: Sureness from which on labels are a uniform sample.

    >>> sureness = np.linspace(1.0, 0.5, 400)
    >>> found = measure_sure_answers(sureness, (sureness < 0.7).astype(float))
    >>> point = found.choose(0.05)
    >>> round(point.share, 2), point.wrong, found.choose(0.001) is None
    (0.6, 0, True)
    """
    is_labelled = np.isfinite(wrong) & (sureness >= least_sureness)
    ordered = np.sort(sureness)[::-1]
    places = np.ceil(SHARES * len(ordered)).astype(int) - 1
    names = None if groups is None else np.asarray(groups, dtype=object)
    points = []
    for least in np.unique(ordered[places])[::-1] if len(ordered) else ():
        is_sure = sureness >= least
        chosen = is_sure & is_labelled
        if least <= 0 or least < least_sureness:
            continue
        units = Units.from_values(wrong[chosen], None if names is None else names[chosen].tolist())
        is_known = len(units) > 0 and (bool((units.counts == 1).all()) or are_enough(units))
        limit = BoundedMean(units, _UNIT, SEED, "sure").limit_above(1 - tail) if is_known else 1.0
        points.append(
            SurePoint(float(least), float(is_sure.mean()), int(chosen.sum()), int(wrong[chosen].sum()), float(limit))
        )
    labels = int(is_labelled.sum())
    of_groups = None if names is None else np.unique(names[is_labelled].astype(str), return_counts=True)[1]
    units_of = float(labels) if of_groups is None else effective_number(of_groups.astype(np.float64))
    covered = float((sureness >= least_sureness).mean()) if len(sureness) else 1.0
    return SureAnswers(len(sureness), labels, units_of, tuple(points), tail, covered)


def least_labels(most: float, tail: float = 1 - LEVEL) -> int:
    """Return how many labels it takes to accept a share of disagreements if people disagree with one answer.

    >>> least_labels(0.05), least_labels(0.1)
    (93, 46)
    """
    number = 1
    while (1 - most) ** number + number * most * (1 - most) ** (number - 1) > tail:
        number += 1
    return number
