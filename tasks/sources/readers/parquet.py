"""Read Parquet files."""

from collections.abc import Generator, Iterable

import pyarrow.parquet as pq

from tasks.sources.readers.arrow_tables import iter_rows, require_unique
from tasks.sources.readers.protocol import RawRow, RowSource
from tasks.sources.source_files import DataFile


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
            groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
            largest = max((group.total_byte_size for group in groups), default=0)
            self.limits.refuse_expansion(largest, self._file.size, self.name)
            # A text that many rows share stays one text until its rows are converted.
            texts = [
                metadata.schema.column(number).path
                for number in range(metadata.num_columns)
                if metadata.schema.column(number).physical_type == "BYTE_ARRAY"
            ]
            with pq.ParquetFile(handle, read_dictionary=texts) as parquet:
                batches = iter_rows(parquet.iter_batches(batch_rows), batch_rows, self.limits)
                for number, content in enumerate(batches, start=1):
                    yield RawRow(number, content)
