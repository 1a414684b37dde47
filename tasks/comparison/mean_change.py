"""Measure the mean change of the scores of rows from one run to another."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metric_core.records import Direction
from metric_core.statistics.bounded_means import LEAST_UNITS, Bounds, estimate_interval
from metric_core.statistics.pairs import Pairs, ScoreColumns, pair_scores
from metric_core.statistics.resampling import SEED, Floats, Interval, Units
from tasks.comparison.run_pair import RunPair

_NOT_TEXT = frozenset({"extras"})
"""Columns of a sample that no metric reads."""


@dataclass(frozen=True, slots=True)
class MeanChange:
    """The mean change of the scores of rows, positive for an improvement, with its 95 % interval.

    Args:
        kind: Plural for the rows.
        interval: None for fewer than five rows or groups.
    """

    kind: str
    rows: int
    mean: float
    interval: Interval | None

    @classmethod
    def from_changes(
        cls,
        kind: str,
        changes: Floats,
        bounds: Bounds | None,
        groups: Sequence[str] | None = None,
        weights: Floats | None = None,
    ) -> "MeanChange":
        """Return the mean of changes.

        Args:
            bounds: Bounds of the changes; None if there are none.
            groups: Group of each row; None if rows are independent.
            weights: Weight of each row; None if each counts once.
        """
        interval = None
        if len(changes) >= LEAST_UNITS:
            interval = estimate_interval(Units.from_values(changes, groups, weights), bounds, SEED)
        return cls(kind, len(changes), float(np.average(changes, weights=weights)) if len(changes) else 0.0, interval)

    @property
    def way(self) -> int:
        """1 or -1 if the mean changed upwards or downwards by more than chance, else 0."""
        if self.interval is None or self.interval.low <= 0 <= self.interval.high:
            return 0
        return 1 if self.interval.low > 0 else -1

    def goes_beyond(self, other: "MeanChange") -> bool:
        """Return whether the mean lies further from 0 than that of other rows, on the same side, beyond chance."""
        if self.interval is None or other.interval is None:
            return False
        return self.interval.high < other.interval.low if self.mean < 0 else self.interval.low > other.interval.high

    def __str__(self) -> str:
        ends = "" if self.interval is None else f" ({self.interval.low:+.3f} to {self.interval.high:+.3f})"
        return f"{self.rows} {self.kind} changed by {self.mean:+.3f}{ends} on average"


def read_pairs(column: ScoreColumns | None) -> tuple[Pairs | None, float]:
    """Return the paired scores of a metric, None unless they have one scale, and the sign of an improvement."""
    if column is None or not column.a or not column.b:
        return None, 1.0
    found = pair_scores(column).pairs
    return (found[0] if len(found) == 1 else None), (-1.0 if column.direction is Direction.LOWER else 1.0)


def mean_change(kind: str, pairs: Pairs, chosen: Sequence[bool], sign: float) -> MeanChange:
    """Return the mean change of some of the paired scores.

    Args:
        kind: Plural for the rows.
        chosen: True for each pair that counts.
        sign: Sign of an improvement.
    """
    mask = np.array(chosen, dtype=bool)
    groups = None if pairs.groups is None else [name for name, is_in in zip(pairs.groups, mask, strict=True) if is_in]
    bounds = None if pairs.bounds is None else pairs.bounds.of_differences
    weights = None if pairs.weights is None else pairs.weights[mask]
    return MeanChange.from_changes(kind, sign * pairs.differences[mask], bounds, groups, weights)


def changed_rows(pair: RunPair) -> frozenset[str]:
    """Return the names of the rows of both runs with another text."""
    changed = pair.changes().changed
    return frozenset(row for row, columns in changed.items() if not _NOT_TEXT.issuperset(columns))
