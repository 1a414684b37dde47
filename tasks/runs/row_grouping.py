"""Read which rows of a run belong together, and find rows that are not independent.

Rows belong together if they have the same value in a column: a document, a customer, a conversation. Rows without a
value are groups of one.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from metric_core import columns as c
from metric_core.columns import COLUMN_ALIASES, COLUMNS, ColumnType
from metric_core.errors import ConfigError
from metric_core.schemas import SAMPLES
from metric_core.statistics.pairs import name_group
from metric_core.statistics.resampling import Interval

ROW_ID = "row_id"
MOST_CHECKED = 100_000
"""Number of rows that are searched for repetitions; the memory for it is limited by this."""
LEAST_REPEATED = 0.05
"""Share of rows that repeat a text of another row, from which on intervals would be clearly too narrow."""

_CLEARLY_WIDER = 1.05
"""Factor by which groups widen an interval, from which on it is said."""

LEAST_CHECKED = 10
"""Number of rows below which nothing is said: the intervals of so few rows are wide in any case."""

REPEATED_TEXTS = (c.USER_INPUT, c.RETRIEVED_CONTEXTS)
"""Columns that are searched for repetitions."""

_TEXTS = tuple(name for name, kind in COLUMNS.items() if kind is ColumnType.TEXT)

_ALWAYS_THERE = tuple(name for name in _TEXTS if name not in SAMPLES.optional)
_ALIASES = {alias: column for alias, column in COLUMN_ALIASES.items() if column in _TEXTS}
"""Names that data can have for a text column of the samples."""


class TextColumn:
    """A text column of the samples, or an extra column of the source, read shard by shard.

    Args:
        purpose: Words for messages: "rows cannot be grouped".
    """

    def __init__(self, name: str, purpose: str) -> None:
        self.name = name
        self._read_from = _ALIASES.get(name.casefold())
        self._purpose = purpose
        self._extra_names: set[str] = set()
        self._has_values = False

    def read(self, shard: pa.Table) -> list[str | None]:
        """Return the values of a shard's rows; None where a row has none.

        Raises:
            ConfigError: The column holds no single text.
        """
        if self.name == ROW_ID or self.name in _TEXTS:
            values: list[str | None] = shard[self.name].to_pylist()
        elif self.name in shard.column_names:
            raise ConfigError(
                f"{self._purpose} by {self.name}, which holds no single text; name one of {', '.join(_TEXTS)}, or an "
                "extra column of the source"
            )
        else:
            extras = [json.loads(text) if text else {} for text in shard["extras"].to_pylist()]
            self._extra_names.update(*extras)
            values = [None if extra.get(self.name) is None else str(extra[self.name]) for extra in extras]
            if self._read_from is not None:  # the name that the data has for a column of samples
                pairs = zip(values, shard[self._read_from].to_pylist(), strict=True)
                values = [read if value is None else value for value, read in pairs]
        self._has_values = self._has_values or any(value is not None for value in values)
        return values

    def read_row(self, sample: Mapping[str, Any]) -> str | None:
        """Return the value of a single row of the samples table; None if it has none.

        >>> TextColumn("topic", "rows cannot be sliced").read_row({"extras": '{"topic": 7}'})
        '7'
        """
        if self.name == ROW_ID or self.name in _TEXTS:
            value = sample.get(self.name)
        else:
            value = (json.loads(sample["extras"]) if sample.get("extras") else {}).get(self.name)
            if value is None and self._read_from is not None:
                value = sample.get(self._read_from)
        return None if value is None else str(value)

    def require_values(self) -> None:
        """Raise if no row that was read has a value.

        Raises:
            ConfigError: The column does not exist, or has no value in any row.
        """
        if self._has_values:
            return
        if self.name in _TEXTS or self.name in self._extra_names:
            raise ConfigError(f"{self._purpose} by {self.name}: no row has a value there")
        names = ", ".join([*_ALWAYS_THERE, *sorted(self._extra_names)])
        raise ConfigError(f"{self._purpose} by {self.name}: there is no column {self.name!r}; there are: {names}")


def columns_with(*names: str) -> list[str]:
    """Return the columns of the samples that hold the ids of rows and the columns of these names.

    >>> columns_with("user_input", "document")
    ['row_id', 'user_input', 'extras']
    """
    stored = {field.name for field in SAMPLES.fields}
    wanted = [
        column for name in names for column in ([name] if name in stored else ["extras", _ALIASES.get(name.casefold())])
    ]
    return list(dict.fromkeys([ROW_ID, *(column for column in wanted if column is not None)]))


def group_column(by: str) -> TextColumn:
    """Return the column by which rows are grouped."""
    return TextColumn(by, "rows cannot be grouped")


def read_groups(shards: Iterable[pa.Table], by: str) -> dict[str, str]:
    """Return a mapping from row id to the name of the row's group; rows without a value are missing.

    Args:
        by: Column by which rows are grouped.

    Raises:
        ConfigError: The column does not exist, or has no value in any row.
    """
    column = group_column(by)
    groups: dict[str, str] = {}
    for shard in shards:
        pairs = zip(shard[ROW_ID].to_pylist(), column.read(shard), strict=True)
        groups.update((row_id, group) for row_id, group in pairs if group is not None)
    column.require_values()
    return groups


def find_session_column(shards: Iterable[pa.Table]) -> str | None:
    """Return the column of sessions if rows share one, so that they are grouped unless another column is named."""
    seen: set[str] = set()
    for shard in shards:
        sessions = [session for session in shard[c.SESSION_ID].to_pylist() if session is not None]
        before = len(seen)
        seen.update(sessions)
        if len(seen) < before + len(sessions):
            return c.SESSION_ID
    return None


def group_names(row_ids: Iterable[str], groups: Mapping[str, str]) -> Iterator[str]:
    """Yield the name of each row's group, or a unique name for a row without one.

    >>> list(group_names(["a", "b"], {"a": "x"}))
    ['group x', 'row b']
    """
    return (name_group(row_id, groups.get(row_id)) for row_id in row_ids)


@dataclass(frozen=True, slots=True)
class Repetition:
    """Rows that have a text in common with other rows.

    Args:
        column: Column with the text.
        rows: Number of rows with a text that another row has, too.
        checked: Number of rows that were searched.
    """

    column: str
    rows: int
    checked: int

    def __str__(self) -> str:
        """Return what was found and what allows for it."""
        advice = f"--by {self.column}" if self.column in _TEXTS else "--by the column of their document"
        return f"{self.rows:,} of {self.checked:,} rows repeat a {self.column}: with {advice}"

    def describe(self, alone: Mapping[str, Interval], grouped: Mapping[str, Interval]) -> str | None:
        """Return a sentence on how much the repetitions widen an interval; None if they hardly widen any.

        Args:
            alone: Metric -> interval of its mean as if rows were independent.
            grouped: Metric -> interval with equal rows resampled together; metrics with too few groups are missing.

        >>> alone, grouped = {"a": Interval(0.4, 0.6), "b": Interval(0.4, 0.6)}, {"a": Interval(0.33, 0.67)}
        >>> repetition = Repetition("user_input", 41, 48)
        >>> repetition.describe(alone, grouped)
        '41 of 48 rows repeat a user_input: with --by user_input the interval of a is 1.7 times as wide'
        >>> repetition.describe(alone, alone) is None, repetition.describe(alone, {})
        (True, '41 of 48 rows repeat a user_input: with --by user_input there are too few groups for an interval')
        """
        if alone and not grouped:
            return f"{self} there are too few groups for an interval"
        wider = {
            metric: (grouped[metric].high - grouped[metric].low) / (interval.high - interval.low)
            for metric, interval in alone.items()
            if metric in grouped and interval.high > interval.low
        }
        widest = max(wider, key=lambda metric: wider[metric], default=None)
        if widest is None or wider[widest] < _CLEARLY_WIDER:
            return None
        return f"{self} the interval of {widest} is {wider[widest]:.1f} times as wide"


def find_repetition(shards: Iterable[pa.Table]) -> Repetition | None:
    """Return the first column of questions and contexts that many rows repeat; None if rows look independent."""
    texts: dict[str, Counter[int]] = {column: Counter() for column in REPEATED_TEXTS}
    checked = 0
    for shard in shards:
        for column, counts in texts.items():
            values = shard[column].slice(0, MOST_CHECKED - checked).to_pylist()
            counts.update(hash(tuple(value) if isinstance(value, list) else value) for value in values if value)
        checked += len(shard)
        if checked >= MOST_CHECKED:
            break
    if checked < LEAST_CHECKED:
        return None
    for column, counts in texts.items():
        repeated = sum(count for count in counts.values() if count > 1)
        if repeated >= max(2, LEAST_REPEATED * min(checked, MOST_CHECKED)):
            return Repetition(column, repeated, min(checked, MOST_CHECKED))
    return None
