"""Pair the scores of two runs by row, and count the rows that cannot be compared."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from metric_core.records import Direction, Score, Status
from metric_core.statistics.bounded_means import Bounds
from metric_core.statistics.resampling import Floats, Units
from metric_core.statistics.slices import RowSlices, groups_within

_DECIMALS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreColumns:
    """The cells of one metric in two runs.

    Args:
        metric: Key of the metric.
        a: Row -> cell of the first run, the baseline; empty without a baseline.
        b: Row -> cell of the second run.
        groups: Row -> name of its group; rows without a name are independent.
        bounds: Least and greatest value; None if the metric has none, or if each scale has its own.
        repeated: Rows of the second run whose value is the mean of two judgments.
        earlier: Row -> cell of runs before the baseline that differ from it by chance alone, oldest first.
        weights: Row -> its weight, above 0; None if each row counts once.
    """

    metric: str
    direction: Direction
    a: Mapping[str, Score]
    b: Mapping[str, Score]
    groups: Mapping[str, str] | None = None
    bounds: tuple[float, float] | None = None
    repeated: frozenset[str] = frozenset()
    earlier: Sequence[Mapping[str, Score]] = ()
    weights: Mapping[str, float] | None = None

    def groups_of(self, rows: Sequence[str]) -> list[str] | None:
        """Return the name of the group of each row; None if rows are not grouped."""
        if self.groups is None:
            return None
        return [name_group(row, self.groups.get(row)) for row in rows]

    def weights_of(self, rows: Iterable[str]) -> Floats | None:
        """Return the weight of each row, 1 for a row without one; None if each counts once."""
        return None if self.weights is None else np.array([self.weights.get(row, 1.0) for row in rows])

    def average(self, judged: Mapping[str, tuple[float, float]]) -> "ScoreColumns":
        """Return the columns with the mean of two judgments of rows of the second run.

        Args:
            judged: Row -> its score, and the one when it was judged again.

        >>> cells = {"x": Score.scored(1.0), "y": Score.scored(0.5)}
        >>> columns = ScoreColumns(metric="faithfulness", direction=Direction.HIGHER, a={}, b=cells)
        >>> found = columns.average({"x": (1.0, 0.0)})
        >>> found.b["x"].value, found.b["y"].value, found.repeated
        (0.5, 0.5, frozenset({'x'}))
        """
        means = {
            row: replace(cell, value=cell.value + (judged[row][1] - judged[row][0]) / 2)
            for row, cell in self.b.items()
            if row in judged and cell.value is not None
        }
        return replace(self, b={**self.b, **means}, repeated=frozenset(means))

    def split(self, sliced: RowSlices) -> dict[str, "ScoreColumns"]:
        """Return the cells of each slice, by value of the column, in the order of the slices.

        The rows of a slice that lies within one group are not grouped.

        >>> from metric_core.statistics.slices import divide_rows
        >>> cells = {"x": Score.scored(1), "y": Score.scored(0)}
        >>> columns = ScoreColumns(metric="faithfulness", direction=Direction.HIGHER, a={}, b=cells)
        >>> {value: list(part.b) for value, part in columns.split(divide_rows("topic", {"x": "a", "y": "b"})).items()}
        {'a': ['x'], 'b': ['y']}
        """
        parts: dict[str, tuple[dict[str, Score], dict[str, Score]]] = {value: ({}, {}) for value in sliced.sizes}
        for side, cells in enumerate((self.a, self.b)):
            for row, cell in cells.items():
                parts[sliced.values[row]][side][row] = cell
        found = {}
        for value, (a, b) in parts.items():
            is_grouped = groups_within(self.groups_of([*a.keys() | b.keys()])) is not None
            found[value] = replace(self, a=a, b=b, groups=self.groups if is_grouped else None)
        return found


def name_group(row: str, group: str | None) -> str:
    """Return the name of a row's group, or a unique name for a row without one.

    >>> name_group("a", "x"), name_group("b", None)
    ('group x', 'row b')
    """
    return f"row {row}" if group is None else f"group {group}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """Counts of paired and unpaired rows of two runs.

    Args:
        paired: Rows scored in both runs on the same scale.
        only_a: Rows that only the first run has.
        only_b: Rows that only the second run has.
        unscored_a: Rows of both runs, scored only in the second.
        unscored_b: Rows of both runs, scored only in the first.
        unscored_both: Rows of both runs, scored in neither.
        rescaled: Rows scored in both runs on different scales.
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
    """Values of the rows scored in both runs, sorted by row id.

    Args:
        scale: Scale of these rows; None if the metric has one scale.
        a: Values in the first run.
        b: Values in the second run.
        groups: Name of the group of each row; None if rows are not grouped.
        bounds: Bounds of the values; None if there are none.
        earlier: Values in runs before the first, as runs x rows, NaN without a value; None without such runs.
        weights: Weight of each row; None if each counts once.
        is_open: True if the metric has no greatest value, so that the values suggest the upper bound.
    """

    scale: str | None
    rows: tuple[str, ...]
    a: Floats
    b: Floats
    groups: Sequence[str] | None
    bounds: Bounds | None = None
    earlier: Floats | None = None
    weights: Floats | None = None
    is_open: bool = False

    def units(self, values: Floats) -> Units:
        """Return the rows, or their groups, with a value for each row."""
        return Units.from_values(values, self.groups, self.weights)

    def without(self, rows: Collection[str]) -> "Pairs":
        """Return the values of the other rows.

        >>> pairs = Pairs(None, ("x", "y", "z"), np.ones(3), np.array([0.0, 0.5, 1.0]), ["u", "u", "v"])
        >>> rest = pairs.without({"y"})
        >>> rest.rows, rest.b.tolist(), rest.groups
        (('x', 'z'), [0.0, 1.0], ['u', 'v'])
        """
        left_out = frozenset(rows)
        kept = [place for place, row in enumerate(self.rows) if row not in left_out]
        return replace(
            self,
            rows=tuple(self.rows[place] for place in kept),
            a=self.a[kept],
            b=self.b[kept],
            groups=None if self.groups is None else [self.groups[place] for place in kept],
            earlier=None if self.earlier is None else self.earlier[:, kept],
            weights=None if self.weights is None else self.weights[kept],
        )

    @property
    def differences(self) -> Floats:
        """Values of the second run minus those of the first, rounded to hide floating-point noise."""
        return np.round(self.b - self.a, _DECIMALS)

    @property
    def difference_bounds(self) -> Bounds | None:
        """Bounds of the differences; None if there are none.

        Without a greatest value, a row that was not seen differs by at most twice as much as all that were.
        """
        if self.bounds is None:
            return None
        if self.is_open and self.differences.any():
            return Bounds(0.0, inf).around(np.abs(self.differences)).of_differences
        return self.bounds.of_differences

    @property
    def are_binary(self) -> bool:
        """Whether all values are 0 or 1."""
        return is_binary(self.a) and is_binary(self.b)

    def in_order(self, cells: Mapping[str, Score], values: Floats) -> Floats:
        """Return values of these rows in the order of a run's cells, which is that of its file."""
        place = {row: number for number, row in enumerate(self.rows)}
        return values[[place[row] for row in cells if row in place]]

    def worsening(self, direction: Direction) -> Floats:
        """Return how much worse each row is in the second run; if the metric has no direction, a decrease is worse."""
        return self.differences if direction is Direction.LOWER else -self.differences


def is_binary(values: Floats) -> bool:
    """Return whether all values are 0 or 1.

    >>> is_binary(np.array([0.0, 1.0])), is_binary(np.array([0.5, 1.0]))
    (True, False)
    """
    return bool(np.isin(values, (0.0, 1.0)).all())


@dataclass(frozen=True, slots=True)
class Paired:
    """Paired cells of a metric in two runs.

    Args:
        pairs: Values per scale; empty if no row has a value in both runs.
        labels: Categories in the first and in the second run, for every row that has one in both.
    """

    counts: RowCounts
    pairs: tuple[Pairs, ...]
    labels: tuple[tuple[str, str], ...]


def pair_scores(columns: ScoreColumns) -> Paired:
    """Pair the cells of two runs by row.

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
    by_scale: dict[str | None, list[str]] = {}
    labels = []
    rescaled = unscored_a = unscored_b = unscored_both = 0
    for row in shared:
        before, after = a[row], b[row]
        if before.status is not Status.SCORED or after.status is not Status.SCORED:
            unscored_a += after.status is Status.SCORED
            unscored_b += before.status is Status.SCORED
            unscored_both += before.status is not Status.SCORED and after.status is not Status.SCORED
        elif before.value is None or after.value is None:
            labels.append((before.label or "", after.label or ""))
        elif before.label != after.label:
            rescaled += 1
        else:
            by_scale.setdefault(before.label, []).append(row)
    counts = RowCounts(
        paired=len(labels) + sum(map(len, by_scale.values())),
        only_a=len(a) - len(shared),
        only_b=len(b) - len(shared),
        unscored_a=unscored_a,
        unscored_b=unscored_b,
        unscored_both=unscored_both,
        rescaled=rescaled,
    )
    pairs = tuple(_build_pairs(columns, scale, by_scale[scale]) for scale in sorted(by_scale, key=str))
    return Paired(counts, pairs, tuple(labels))


def _build_pairs(columns: ScoreColumns, scale: str | None, rows: list[str]) -> Pairs:
    a, b = (np.array([cells[row].value for row in rows], float) for cells in (columns.a, columns.b))
    before = [[_value(cells.get(row), scale) for row in rows] for cells in columns.earlier]
    bounds, earlier = Bounds.of_metric(columns.bounds, scale), np.array(before) if before else None
    is_open = bounds is not None and bounds.is_open
    bounds = None if bounds is None else bounds.close_at(np.concatenate([a, b]))
    return Pairs(scale, tuple(rows), a, b, columns.groups_of(rows), bounds, earlier, columns.weights_of(rows), is_open)


def _value(cell: Score | None, scale: str | None) -> float:
    return np.nan if cell is None or cell.value is None or cell.label != scale else float(cell.value)
