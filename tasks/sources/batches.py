"""Collect samples into tables of the samples schema."""

from typing import Any

import pyarrow as pa

from metric_core.columns import COLUMNS
from metric_core.schemas import SAMPLES
from tasks.sources.sample_rows import SampleRow


class BatchBuilder:
    """A builder of tables of the samples schema."""

    def __init__(self) -> None:
        self._schema = SAMPLES.arrow
        self._columns: dict[str, list[Any]] = {name: [] for name in self._schema.names}
        self.size = 0
        """Approximate size of the texts of the samples."""

    def __len__(self) -> int:
        return len(self._columns["row_id"])

    def add(self, row_id: str, number: int, row: SampleRow) -> None:
        """Add a sample."""
        self._columns["row_id"].append(row_id)
        self._columns["row_number"].append(number)
        self._columns["extras"].append(row.extras)
        for column in COLUMNS:
            self._columns[column].append(row.values.get(column))
        self.size += sum(map(_size, (row.extras, *row.values.values())))

    def take(self) -> pa.Table:
        """Return a table of the samples added since the last call."""
        arrays = [pa.array(self._columns[field.name], field.type) for field in self._schema]
        self._columns = {name: [] for name in self._schema.names}
        self.size = 0
        return pa.table(arrays, schema=self._schema)


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_size, value.values()))
    return sum(map(_size, value)) if isinstance(value, list) else 0
