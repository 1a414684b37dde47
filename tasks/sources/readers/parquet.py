"""Read Parquet files."""

from collections.abc import Generator, Iterable, Sequence
from typing import TypeAlias

import pyarrow.parquet as pq

from tasks.sources.readers.arrow_tables import iter_rows, require_unique
from tasks.sources.readers.protocol import RawRow, RowSource
from tasks.sources.readers.read_limits import BATCH_BYTES
from tasks.sources.readers.source_files import DataFile

_TEXT = "BYTE_ARRAY"
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, _TEXT: 4}
"""Size of a value when it is read, in bytes; of a text, that of its number in the dictionary. Others have 8."""
_DELTA = "DELTA_BYTE_ARRAY"
"""The encoding of texts by what they have in common with the text before, which cannot be read as a dictionary."""

_Chunk: TypeAlias = pq.ColumnChunkMetaData
"""The metadata of a column of a row group."""


class ParquetSource(RowSource):
    """A Parquet file."""

    has_schema = True
    fills_keys = True

    def __init__(self, file: DataFile) -> None:
        super().__init__(file.name)
        self._file = file

    def column_sets(self, limit: int | None) -> Generator[Iterable[str], None, None]:  # noqa: ARG002 - has a schema
        """Yield the column names of the schema."""
        with self._file.open() as handle:
            yield require_unique(pq.read_schema(handle).names, self.name)

    def rows(self, batch_rows: int) -> Generator[RawRow, None, None]:
        """Yield the rows of the row groups."""
        with self._file.open() as handle:
            metadata = pq.read_metadata(handle)
            columns = [metadata.schema.column(index) for index in range(metadata.num_columns)]
            groups = [
                [metadata.row_group(number).column(index) for index in range(len(columns))]
                for number in range(metadata.num_row_groups)
            ]
            stored = self._file.expansion()
            for chunk, column in ((group[index], column) for group in groups for index, column in enumerate(columns)):
                stored.add(max(chunk.total_uncompressed_size, chunk.num_values * _width(column)))
            deltas = {chunk.path_in_schema for group in groups for chunk in group if _DELTA in chunk.encodings}
            # A text that many rows share stays one text until its rows are converted.
            shared = [each.path for each in columns if each.physical_type == _TEXT and each.path not in deltas]
            with pq.ParquetFile(handle, read_dictionary=shared) as parquet:
                batches = (
                    batch
                    for number, group in enumerate(groups)
                    for batch in parquet.iter_batches(_rows_at_once(group, batch_rows), row_groups=[number])
                )
                rows = iter_rows(batches, batch_rows, self._file.expansion())
                for number, content in enumerate(rows, start=1):
                    yield RawRow(number, content)


def _width(column: pq.ColumnSchema) -> int:
    length, kind = int(column.length), str(column.physical_type)
    return length if length > 0 else _WIDTHS.get(kind, 8)


def _rows_at_once(group: Sequence[_Chunk], batch_rows: int) -> int:
    """Return the number of rows of a group to read at a time.

    A text that shares its beginning with the one before may take nearly no space, but no text is larger than
    all that its column stores.
    """
    longest: int = sum(chunk.total_uncompressed_size for chunk in group if _DELTA in chunk.encodings)
    return max(1, min(batch_rows, BATCH_BYTES // max(longest, 1)))
