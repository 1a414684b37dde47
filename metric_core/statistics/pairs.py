"""The score columns of two runs, put together row by row: what can be compared, and what can not and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from metric_core.records import Direction, Score, Status
from metric_core.statistics.resampling import Floats

_DECIMALS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreColumns:
    """The cells of one metric in two runs.

    Args:
        metric: the key of the metric.
        direction: whether more is better.
        a: cells of the first run, the baseline, by row; empty where there is none.
        b: cells of the second run, by row.
        groups: row -> the group it belongs to, where rows belong together; a row that it lacks stands alone.
    """

    metric: str
    direction: Direction
    a: Mapping[str, Score]
    b: Mapping[str, Score]
    groups: Mapping[str, str] | None = None

    def groups_of(self, rows: Sequence[str]) -> list[str] | None:
        """The group of each row; None where no row belongs to another."""
        if self.groups is None:
            return None
        return [f"group {self.groups[row]}" if row in self.groups else f"row {row}" for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """What became of the rows of two runs.

    Args:
        paired: rows scored in both, on the same scale.
        only_a: rows that only the first run has.
        only_b: rows that only the second run has.
        unscored_a: rows of both, scored in the second run only.
        unscored_b: rows of both, scored in the first run only.
        unscored_both: rows of both, scored in neither.
        rescaled: rows scored in both, on different scales of their own.
    """

    paired: int = 0
    only_a: int = 0
    only_b: int = 0
    unscored_a: int = 0
    unscored_b: int = 0
    unscored_both: int = 0
    rescaled: int = 0


@dataclass(frozen=True, slots=True)
class Pairs:
    """The values of rows scored in both runs, in the order of the rows' ids.

    Args:
        scale: the scale that the rows themselves bring; None where the metric has one.
        rows: their ids.
        a: values in the first run.
        b: values in the second run.
        groups: the group of each row, where rows belong together.
    """

    scale: str | None
    rows: tuple[str, ...]
    a: Floats
    b: Floats
    groups: Sequence[str] | None

    @property
    def differences(self) -> Floats:
        """Second run minus first, without what rounding leaves."""
        return np.round(self.b - self.a, _DECIMALS)

    @property
    def are_binary(self) -> bool:
        """Whether all values are 0 or 1."""
        return is_binary(self.a) and is_binary(self.b)

    def worsening(self, direction: Direction) -> Floats:
        """By how much each row is worse in the second run; less counts as worse for a metric of no direction."""
        return self.differences if direction is Direction.LOWER else -self.differences


def is_binary(values: Floats) -> bool:
    """Whether all values are 0 or 1.

    >>> is_binary(np.array([0.0, 1.0])), is_binary(np.array([0.5, 1.0]))
    (True, False)
    """
    return bool(np.isin(values, (0.0, 1.0)).all())


@dataclass(frozen=True, slots=True)
class Paired:
    """A metric of two runs put together.

    Args:
        counts: what became of the rows.
        pairs: one entry a scale; none where no row has a value in both.
        labels: category in the first run, category in the second, of every row that has one in both.
    """

    counts: RowCounts
    pairs: tuple[Pairs, ...]
    labels: tuple[tuple[str, str], ...]


def pair_scores(columns: ScoreColumns) -> Paired:
    """Puts the cells of two runs together by row.

    >>> paired = pair_scores(
    ...     ScoreColumns(
    ...         metric="faithfulness",
    ...         direction=Direction.HIGHER,
    ...         a={"x": Score.scored(1), "y": Score.scored(0.5)},
    ...         b={"x": Score.scored(0), "y": Score.failed("no usable reply"), "z": Score.scored(1)},
    ...     )
    ... )
    >>> paired.counts.paired, paired.counts.unscored_b, paired.counts.only_b, paired.pairs[0].b.tolist()
    (1, 1, 1, [0.0])
    """
    a, b = columns.a, columns.b
    shared = sorted(a.keys() & b.keys())
    scored = [row for row in shared if a[row].status == b[row].status == Status.SCORED]
    by_scale: dict[str | None, list[str]] = {}
    labels = []
    rescaled = 0
    for row in scored:
        before, after = a[row], b[row]
        if before.value is None or after.value is None:
            labels.append((before.label or "", after.label or ""))
        elif before.label != after.label:
            rescaled += 1
        else:
            by_scale.setdefault(before.label, []).append(row)
    counts = RowCounts(
        paired=len(scored) - rescaled,
        only_a=len(a.keys() - b.keys()),
        only_b=len(b.keys() - a.keys()),
        unscored_a=sum(a[row].status != Status.SCORED and b[row].status == Status.SCORED for row in shared),
        unscored_b=sum(a[row].status == Status.SCORED and b[row].status != Status.SCORED for row in shared),
        unscored_both=sum(a[row].status != Status.SCORED and b[row].status != Status.SCORED for row in shared),
        rescaled=rescaled,
    )
    pairs = tuple(_build_pairs(columns, scale, by_scale[scale]) for scale in sorted(by_scale, key=str))
    return Paired(counts, pairs, tuple(labels))


def _build_pairs(columns: ScoreColumns, scale: str | None, rows: list[str]) -> Pairs:
    a, b = (np.array([cells[row].value for row in rows], dtype=np.float64) for cells in (columns.a, columns.b))
    return Pairs(scale, tuple(rows), a, b, columns.groups_of(rows))
