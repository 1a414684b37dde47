"""Read the rows of stage tables that belong to some samples, a few samples at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from metric_core.errors import RunFolderError
from metric_core.schemas import SCHEMAS
from metric_core.stages import Stage
from tasks.runs.file_checks import check_table

_MOST_BYTES = 1 << 30
"""Size up to which texts are put in order with offsets of 32 bits, which end at twice that size."""


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Rows of a stage's table in the order of their samples, as Arrow holds them: a tenth of the size of Python values.

    Args:
        ends: Number of rows up to and including each sample.
        lacking: Optional columns that the table is stored without.
    """

    table: pa.Table
    ends: NDArray[np.int64]
    lacking: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path, stage: Stage, row_ids: Sequence[str]) -> Self:
        """Read the rows that belong to samples; row groups without any are not read, and one is in memory at a time.

        Args:
            path: Parquet file of the table; without it, no sample has rows.

        Raises:
            RunFolderError: The table cannot be read.
        """
        if not path.exists():
            return cls(SCHEMAS[stage].arrow.empty_table(), np.zeros(len(row_ids), np.int64))
        ids = pa.array(row_ids, pa.string())
        try:
            schema = pq.read_schema(path)
            check_table(schema, stage, path)
            with pq.ParquetFile(path, read_dictionary=_repeating(schema, stage)) as file:
                found = [*_filtered_groups(file, ids)]
        except (OSError, pa.ArrowException) as error:
            raise RunFolderError(f"the table {path} cannot be read ({error}). Run the evaluation again.") from error
        table = pa.concat_tables(found).cast(schema) if found else schema.empty_table()
        if table.nbytes > _MOST_BYTES:
            table = table.cast(pa.schema([field.with_type(_with_large_offsets(field.type)) for field in schema]))
        samples = pc.index_in(table["row_id"], value_set=ids).to_numpy()
        order = np.argsort(samples, kind="stable")
        ends = np.searchsorted(samples[order], np.arange(len(row_ids)), side="right")
        lacking = set(SCHEMAS[stage].arrow.names).difference(table.column_names)
        return cls(table.take(pa.array(order)).combine_chunks(), ends, tuple(sorted(lacking)))

    def without_rows(self) -> list[int]:
        """Return the positions of the samples without rows."""
        found: list[int] = np.flatnonzero(np.diff(self.ends, prepend=0) == 0).tolist()
        return found

    def of_samples(self, start: int, stop: int) -> list[list[dict[str, Any]]]:
        """Return the rows of each sample from one position to before another."""
        ends = self.ends[start:stop].tolist()
        first = int(self.ends[start - 1]) if start else 0
        rows: list[dict[str, Any]] = self.table.slice(first, ends[-1] - first).to_pylist() if ends else []
        for name in self.lacking:
            for row in rows:
                row[name] = None
        return [rows[begin - first : end - first] for begin, end in zip([first, *ends], ends, strict=False)]


def _repeating(schema: pa.Schema, stage: Stage) -> list[str]:
    """Return the columns with few different texts; they are read and filtered as dictionaries, as they are stored."""
    return [] if stage is Stage.SAMPLES else [field.name for field in schema if pa.types.is_string(field.type)]


def _filtered_groups(file: pq.ParquetFile, ids: pa.Array) -> Iterator[pa.Table]:
    """Yield the rows of samples in each row group that holds some."""
    for number in range(file.num_row_groups):
        is_wanted = pc.is_in(file.read_row_group(number, ["row_id"])["row_id"], value_set=ids)
        if pc.any(is_wanted).as_py():
            yield file.read_row_group(number, use_threads=False).filter(is_wanted)


def _with_large_offsets(kind: pa.DataType) -> pa.DataType:
    """Return the type whose texts and lists may have more than two billion bytes and items."""
    if pa.types.is_string(kind):
        return pa.large_string()
    if pa.types.is_list(kind):
        return pa.large_list(_with_large_offsets(kind.value_type))
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return pa.struct([field.with_type(_with_large_offsets(field.type)) for field in fields])
    return kind
