"""Read Arrow files: the file format, which Feather shares, and the stream format, which `datasets` writes."""

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa

from tasks.sources.readers.arrow_messages import decompressed_sizes
from tasks.sources.readers.arrow_tables import iter_rows, require_unique
from tasks.sources.readers.protocol import RawRow, RowSource
from tasks.sources.readers.source_files import DataFile

_FILE_MAGIC = b"ARROW1"
_FIRST_MESSAGE = 8
"""Position of the first message in a file, which may be read as a stream from there."""


class ArrowFileSource(RowSource):
    """An Arrow or Feather file."""

    has_schema = True
    fills_keys = True

    def __init__(self, file: DataFile) -> None:
        super().__init__(file.name)
        self._file = file

    def column_sets(self, limit: int | None) -> Generator[Iterable[str], None, None]:  # noqa: ARG002 - has a schema
        """Yield the column names of the schema."""
        with self._file.open() as handle, _open(handle) as (schema, _):
            yield require_unique(schema.names, self.name)

    def rows(self, batch_rows: int) -> Generator[RawRow, None, None]:
        """Yield the rows of the record batches."""
        with self._file.open() as handle:
            self._refuse_expansion(handle)
            with _open(handle) as (_, batches):
                rows = iter_rows(map(_valid, batches), batch_rows, self.limits, self._file.expansion(self.limits))
                for number, content in enumerate(rows, start=1):
                    yield RawRow(number, content)

    def _refuse_expansion(self, handle: BinaryIO) -> None:
        """Refuse a file whose compressed batches expand too much, before they are decompressed."""
        handle.seek(_FIRST_MESSAGE if handle.read(len(_FILE_MAGIC)) == _FILE_MAGIC else 0)
        expansion = self._file.expansion(self.limits)
        for size in decompressed_sizes(handle):
            expansion.add(size)
        handle.seek(0)


def _valid(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a record batch if its offsets and indices stay within its buffers, which reading does not check."""
    batch.validate(full=True)
    return batch


@contextmanager
def _open(handle: BinaryIO) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    is_file = handle.read(len(_FILE_MAGIC)) == _FILE_MAGIC
    handle.seek(0)
    if is_file:
        with pa.ipc.open_file(handle) as reader:
            yield reader.schema, (reader.get_batch(index) for index in range(reader.num_record_batches))
    else:
        with pa.ipc.open_stream(handle) as reader:
            yield reader.schema, iter(reader)
