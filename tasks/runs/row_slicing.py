"""Read into which slices the rows of a run are divided."""

from collections import Counter
from collections.abc import Iterable, Sequence

import pyarrow as pa

from metric_core.errors import ConfigError
from metric_core.statistics.slices import OTHER_VALUES, RowSlices, divide_rows
from tasks.runs.row_grouping import ROW_ID, TextColumn

MAX_SLICES = 50
"""Number of slices of a column; the rows of its rarest values beyond it are one slice."""

_REPEATED = 0.5
"""Share of rows with unique values above which a column is useless for slices."""


class SliceColumn:
    """A column that divides rows into slices, read shard by shard."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._column = TextColumn(name, "rows cannot be sliced")
        self._counts: Counter[str] = Counter()

    def read(self, shard: pa.Table) -> list[str | None]:
        """Return the values of a shard's rows; None where a row has none.

        Raises:
            ConfigError: The column holds no single text.
        """
        values = [text if text and text.strip() else None for text in self._column.read(shard)]
        self._counts.update(value.strip() for value in values if value is not None)
        return values

    def check(self) -> None:
        """Check that the rows that were read can be sliced.

        Raises:
            ConfigError: The column does not exist, has no value in any row, or has unique values in nearly all rows.
        """
        self._column.require_values()
        rows = self._counts.total()
        if not rows:
            raise ConfigError(f"rows cannot be sliced by {self.name}: no row has a value there")
        if len(self._counts) > max(MAX_SLICES, _REPEATED * rows):
            raise ConfigError(
                f"rows cannot be sliced by {self.name}: {rows:,} rows have {len(self._counts):,} different values, so "
                "hardly any slice would have two rows. Name a column with few values, such as a customer, a language "
                "or a topic."
            )

    def warn(self) -> str | None:
        """Return a sentence if there are more values than slices, else None."""
        if len(self._counts) <= MAX_SLICES:
            return None
        return (
            f"{self.name} has {len(self._counts):,} values, wanted at most {MAX_SLICES} slices: the {MAX_SLICES - 1} "
            f"most frequent values are slices of their own, the rows of the others are one slice, {OTHER_VALUES}."
        )


def read_slices(shards: Iterable[pa.Table], columns: Sequence[str]) -> list[RowSlices]:
    """Return the slices of a run's rows, by row id, for each column.

    Raises:
        ConfigError: Rows cannot be sliced by a column.
    """
    if not columns:
        return []
    sliced = {name: SliceColumn(name) for name in columns}
    values: dict[str, dict[str, str | None]] = {name: {} for name in columns}
    for shard in shards:
        row_ids = shard[ROW_ID].to_pylist()
        for name, column in sliced.items():
            values[name].update(zip(row_ids, column.read(shard), strict=True))
    for column in sliced.values():
        column.check()
    return [divide_rows(name, found, MAX_SLICES) for name, found in values.items()]
