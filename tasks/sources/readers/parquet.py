"""Read Parquet files."""

from collections.abc import Generator, Iterable

import pyarrow.parquet as pq

from tasks.sources.readers.arrow_tables import iter_rows, require_unique
from tasks.sources.readers.protocol import RawRow, RowSource
from tasks.sources.source_files import DataFile


class ParquetSource(RowSource):
    """A Parquet file."""

    has_schema = True

    def __init__(self, file: DataFile) -> None:
        super().__init__(file.name)
        self._file = file

    def column_sets(self, limit: int | None) -> Generator[Iterable[str], None, None]:  # noqa: ARG002 - has a schema
        """Yield the column names of the schema."""
        with self._file.open() as handle:
            yield require_unique(pq.read_schema(handle).names, self.name)

    def rows(self, batch_rows: int) -> Generator[RawRow, None, None]:
        """Yield the rows of the row groups."""
        with self._file.open() as handle, pq.ParquetFile(handle) as parquet:
            for number, content in enumerate(iter_rows(parquet.iter_batches(batch_rows), batch_rows), start=1):
                yield RawRow(number, content)
