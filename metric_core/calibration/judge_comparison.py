"""Compare the agreement of judges with people on the same labelled rows.

The agreement of a row is 1 if the judge decides as people did and 0 if not; a score from the middle on means yes. For
grades it is 1 less the distance of score and grade, both on [0, 1].
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from metric_core.calibration.labels import Scale
from metric_core.statistics.bounded_means import Bounds, estimate_interval
from metric_core.statistics.resampling import SEED, Floats, Interval, Units

MIDDLE = 0.5
"""Score from which on a judge says yes."""


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


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """The agreement of a judge with people.

    Args:
        agreement: Mean agreement over the rows, in [0, 1].
        interval: Its 95 % interval; None for too few rows.
    """

    name: str
    agreement: float
    interval: Interval | None


def compare_agreements(rows: LabelledRows, seed: int = SEED) -> tuple[JudgeAgreement, ...]:
    """Return the agreement of each judge, the one that agrees most first.

    >>> labels = np.array([1.0, 0.0] * 20)
    >>> found = compare_agreements(LabelledRows(Scale.BINARY, labels, {"bad": 1 - labels, "good": labels}))
    >>> [(judge.name, judge.agreement) for judge in found]
    [('good', 1.0), ('bad', 0.0)]
    """
    units = {name: rows.units(rows.agreements(name)) for name in rows.scores}
    return tuple(
        JudgeAgreement(name, units[name].mean, estimate_interval(units[name], Bounds(0.0, 1.0), seed, name))
        for name in sorted(units, key=lambda name: -units[name].mean)
    )
