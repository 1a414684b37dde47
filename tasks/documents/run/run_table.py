"""A table of a run for notebooks: displayed as HTML, converted for other libraries."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from metric_core.parsing.control_characters import escape_controls
from tasks.documents.blocks import Line, make_table, own
from tasks.documents.html import to_html

if TYPE_CHECKING:
    import pandas as pd

SHOWN_ROWS = 10
LONGEST_CELL = 200


class RunTable:
    """A table of a run, displayed as HTML in notebooks.

    >>> table = RunTable(pa.table({"metric": ["faithfulness"], "value": [0.5]}))
    >>> len(table), table.columns, table.to_pylist()
    (1, ['metric', 'value'], [{'metric': 'faithfulness', 'value': 0.5}])
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._table.column_names)

    def to_arrow(self) -> pa.Table:
        """Return the Arrow table."""
        return self._table

    def to_pandas(self) -> "pd.DataFrame":
        """Return the table as a pandas data frame; missing values are NaN or None."""
        return self._table.to_pandas()

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as dicts."""
        rows: list[dict[str, Any]] = self._table.to_pylist()
        return rows

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_pylist())

    def __repr__(self) -> str:
        return escape_controls(f"RunTable({len(self)} rows: {', '.join(self.columns)})")

    def _repr_html_(self) -> str:
        rows = ([_cell(value) for value in row.values()] for row in self._table.slice(0, SHOWN_ROWS).to_pylist())
        more = [Line(own(f"{SHOWN_ROWS} of {len(self):,} rows"))] if len(self) > SHOWN_ROWS else []
        return to_html([make_table(self.columns, rows, ()), *more])


def _cell(value: Any) -> str:
    text = "" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…"
