"""Divide the rows of a run by the values of a column, such as a customer, a language or a topic.

Slices answer another question than groups. A group holds rows that are not independent, and is drawn as a whole; a
slice holds rows that a reader wants to see separately. Rows of a slice can belong to groups. If all belong to one, as
in a slice for each customer of rows grouped by customer, the question is about it, and its rows are the units.

A reader who looks at many slices finds a bad one by chance. So a slice is called worse than the other rows only if a
test says so after Holm's correction over all slices and metrics of the run. The intervals of slices are those of single
means, at 95 % each.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

NO_VALUE = "(no value)"
"""Value of the slice of rows without a value."""
OTHER_VALUES = "(other values)"
"""Value of the slice of rows whose values are too rare for separate slices."""

_LONGEST = 80
"""Maximum number of characters of a value in words."""
SMALL_SLICE = 30
"""Number of rows below which a slice is called small: its mean can be far from the truth."""


@dataclass(frozen=True, slots=True, order=True)
class Slice:
    """The rows that have one value in a column.

    Args:
        value: Value of the rows, NO_VALUE, or OTHER_VALUES.
    """

    column: str
    value: str

    def __str__(self) -> str:
        """Return the slice in words, in one line; a long value is cut.

        >>> str(Slice("topic", "travel")), str(Slice("topic", NO_VALUE))
        ('topic travel', 'no topic')
        """
        if self.value == NO_VALUE:
            return f"no {self.column}"
        if self.value == OTHER_VALUES:
            return f"other values of {self.column}"
        value = " ".join(self.value.split())
        return f"{self.column} {value if len(value) <= _LONGEST else f'{value[:_LONGEST]}…'}"


@dataclass(frozen=True)
class RowSlices:
    """The rows of a run divided by a column; every row is in one slice.

    Args:
        values: Row -> value of its slice.
        merged: Number of values whose rows make up the slice OTHER_VALUES.
    """

    column: str
    values: Mapping[str, str]
    merged: int = 0

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Value -> number of rows, the largest slice first; rows without a value, and then other values, last.

        >>> divide_rows("topic", {"a": "x", "b": None, "c": "y", "d": "y", "e": None, "f": None}).sizes
        {'y': 2, 'x': 1, '(no value)': 3}
        """
        counts = Counter(self.values.values())
        last = [value for value in (NO_VALUE, OTHER_VALUES) if value in counts]
        ordered = [value for value in rank_values(counts) if value not in last] + last
        return {value: counts[value] for value in ordered}

    @property
    def distinct(self) -> int:
        """Number of different values, without those that are missing."""
        own = [value for value in self.sizes if value not in (NO_VALUE, OTHER_VALUES)]
        return len(own) + (self.merged or OTHER_VALUES in self.sizes)

    def find(self, row: str) -> Slice | None:
        """Return the slice of a row; None for an unknown row."""
        value = self.values.get(row)
        return None if value is None else Slice(self.column, value)


def divide_rows(
    column: str, values: Mapping[str, str | None], most: int | None = None, kept: Collection[str] = ()
) -> RowSlices:
    """Divide rows by their values.

    If there are too many values, the most frequent ones have separate slices; of values that are equally frequent,
    the first in alphabetical order. All other rows are in the slice OTHER_VALUES.

    Args:
        values: Row -> value; None or a blank text for a row without one.
        most: Maximum number of slices, at least 2, including OTHER_VALUES; rows without a value do not count.
            None for any number.
        kept: Values that have separate slices in any case.

    >>> divide_rows("topic", {"a": "x", "b": None, "c": "y", "d": "x", "e": "z"}, most=2).values
    {'a': 'x', 'b': '(no value)', 'c': '(other values)', 'd': 'x', 'e': '(other values)'}
    """
    stripped = {row: NO_VALUE if value is None else value.strip() or NO_VALUE for row, value in values.items()}
    counts = Counter(stripped.values())
    counts.pop(NO_VALUE, None)
    if most is None or len(counts) <= most:
        return RowSlices(column, stripped)
    own = {NO_VALUE, *rank_values(counts)[: most - 1], *kept}
    return RowSlices(
        column,
        {row: value if value in own else OTHER_VALUES for row, value in stripped.items()},
        merged=len(counts.keys() - own),
    )


def groups_within(groups: Sequence[str] | None) -> Sequence[str] | None:
    """Return the group of each row of a slice; None if its rows are the units.

    Args:
        groups: Group of each row of the slice; None if rows are independent.

    >>> groups_within(["acme", "bosk", "acme"]), groups_within(["acme", "acme"])
    (['acme', 'bosk', 'acme'], None)
    """
    return groups if groups is not None and len(set(groups)) != 1 else None


def rank_values(counts: Mapping[str, int]) -> list[str]:
    """Return values in descending order of frequency, equally frequent ones in alphabetical order."""
    return sorted(counts, key=lambda value: (-counts[value], value))
