"""Choose the rows that a second judge is asked about, and put its scores in place of those of the first.

Only rows with another score decide between two runs. If they are more than a second judge may be asked about, they are
chosen evenly by their change, and each stands for those with the most similar change: a few verdicts could not outweigh
an error that all of them share. Of a rule about the mean of one run, the rows come first of which the judge is least
sure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from metric_core.records import Score
from metric_core.statistics.pairs import Pairs, ScoreColumns

SHARE = 0.1
"""Largest share of the rows that a second judge is asked about."""

SecondScores: TypeAlias = Mapping[str, tuple[float | None, float]]
"""Row -> scores of a second judge in the first run, None without one, and in the second."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Rows on which an outcome of a metric hangs.

    Args:
        metric: Key of the metric.
        rows: Names of the rows in the order in which they are chosen.
        are_even: True if they are chosen evenly from all, False if those that come first are.
    """

    metric: str
    rows: Sequence[str]
    are_even: bool = True

    def take(self, count: int) -> list[str]:
        """Return so many of the rows, or all.

        >>> Candidates("m", "abcdef").take(3), Candidates("m", "abcdef", are_even=False).take(3)
        (['b', 'd', 'f'], ['a', 'b', 'c'])
        """
        if count >= len(self.rows):
            return list(self.rows)
        if not self.are_even:
            return list(self.rows[:count])
        return [self.rows[int((place + 0.5) * len(self.rows) / count)] for place in range(count)]


def most_rows(rows: int) -> int:
    """Return the largest number of rows that a second judge is asked about, at least one.

    >>> most_rows(300), most_rows(7)
    (30, 1)
    """
    return max(1, int(SHARE * rows))


def choose_rows(candidates: Iterable[Candidates], most: int) -> dict[str, list[str]]:
    """Return metric -> rows to ask about: as many of each outcome as leaves at most so many in all.

    Args:
        most: Largest number of rows.

    >>> choose_rows([Candidates("m", "abcd"), Candidates("n", "cdef")], 3)
    {'m': ['b', 'd'], 'n': ['d', 'f']}
    """
    every = list(candidates)
    for count in range(max((len(each.rows) for each in every), default=0), 0, -1):
        taken = [(each.metric, each.take(count)) for each in every]
        if len({row for _, rows in taken for row in rows}) <= most:
            break
    else:
        return {}
    found: dict[str, dict[str, None]] = {}
    for metric, rows in taken:
        found.setdefault(metric, {}).update(dict.fromkeys(rows))
    return {metric: list(rows) for metric, rows in found.items()}


def order_by_change(pairs: Pairs) -> list[str]:
    """Return the rows whose score changed, from the largest decrease to the largest increase."""
    changes = pairs.differences
    return [pairs.rows[place] for place in np.argsort(changes, kind="stable") if changes[place]]


def stand_in(ordered: Sequence[str], scores: SecondScores) -> dict[str, tuple[float, float]]:
    """Return the scores of a second judge in two runs for all rows of an order: its own, or those of the nearest row.

    Args:
        ordered: Rows in an order in which neighbours resemble each other.

    >>> stand_in("abcd", {"b": (1.0, 0.0), "d": (1.0, 1.0)})
    {'a': (1.0, 0.0), 'b': (1.0, 0.0), 'c': (1.0, 0.0), 'd': (1.0, 1.0)}
    """
    known: dict[int, tuple[float, float]] = {}
    for place, row in enumerate(ordered):
        before, after = scores.get(row, (None, 0.0))
        if before is not None:
            known[place] = (before, after)
    if not known:
        return {}
    places = np.array(list(known))
    nearest = places[np.searchsorted((places[1:] + places[:-1]) / 2, np.arange(len(ordered)))]
    return {row: known[int(place)] for row, place in zip(ordered, nearest, strict=True)}


def judge_pairs(pairs: Pairs, scores: SecondScores) -> Pairs:
    """Return pairs with the scores of a second judge for the rows that changed.

    Earlier values move with those of the first run: what chance did to a row stays as it was.
    """
    judged = stand_in(order_by_change(pairs), scores)
    a, b = pairs.a.copy(), pairs.b.copy()
    for place, row in enumerate(pairs.rows):
        a[place], b[place] = judged.get(row, (a[place], b[place]))
    return replace(pairs, a=a, b=b, earlier=None if pairs.earlier is None else pairs.earlier + (a - pairs.a))


def judge_columns(columns: ScoreColumns, paired: Iterable[Pairs], scores: SecondScores) -> ScoreColumns:
    """Return the cells of a metric with the scores of a second judge, for a gate.

    Args:
        paired: Pairs of the rows on each scale.
    """
    a, b = dict(columns.a), dict(columns.b)
    for pairs in paired:
        for row, (before, after) in stand_in(order_by_change(pairs), scores).items():
            a[row], b[row] = replace(a[row], value=before), replace(b[row], value=after)
    for row, (first, second) in scores.items():
        if first is not None:
            _set_value(a, row, first)
        _set_value(b, row, second)
    return replace(columns, a=a, b=b)


def _set_value(cells: dict[str, Score], row: str, value: float) -> None:
    if row in cells and cells[row].value is not None:
        cells[row] = replace(cells[row], value=value)
