"""Parquet: one file, or a folder of files that are read one after the other in the order of their names."""

from collections.abc import Generator, Iterable, Sequence

import pyarrow.parquet as pq

from tasks.sources.files import DataFile
from tasks.sources.readers.arrow_tables import contents, unique
from tasks.sources.readers.protocol import RawRow, RowSource
from tasks.sources.wording import listed


class ParquetSource(RowSource):
    """Parquet files. Numbers count rows over all files.

    Args:
        files: at least one.
        name: the file or the folder as messages name it.
        left_out: names of the folder's other files.
    """

    def __init__(self, files: Sequence[DataFile], name: str, left_out: Sequence[str] = ()) -> None:
        super().__init__(name)
        self._files = files
        self._left_out = left_out

    @property
    def warnings(self) -> tuple[str, ...]:
        """A folder may hold more than the source that was meant."""
        if not self._left_out:
            return ()
        return (f"{self.name}: only .parquet files are read, not {listed(self._left_out, most=5)}",)

    def column_sets(self, limit: int | None) -> Generator[Iterable[str], None, None]:  # noqa: ARG002 - has schemas
        """The schema of each file."""
        for file in self._files:
            with file.open() as handle:
                yield unique(pq.read_schema(handle).names, file.name)

    def rows(self, batch_rows: int) -> Generator[RawRow, None, None]:
        """The rows of each file."""
        number = 0
        several = len(self._files) > 1
        for file in self._files:
            with file.open() as handle, pq.ParquetFile(handle) as parquet:
                for content in contents(parquet.iter_batches(batch_rows), batch_rows):
                    number += 1
                    yield RawRow(number, content, file.name if several else "")
