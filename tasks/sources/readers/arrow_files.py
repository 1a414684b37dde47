"""Read Arrow files: the file format, which Feather shares, and the stream format, which `datasets` writes."""

import struct
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa

from tasks.sources.readers.arrow_tables import iter_rows, require_unique
from tasks.sources.readers.protocol import RawRow, RowSource
from tasks.sources.readers.source_files import DataFile

_FILE_MAGIC = b"ARROW1"
_FIRST_MESSAGE = 8
"""Position of the first message in a file, which may be read as a stream from there."""

# Field numbers of the tables in Message.fbs of Arrow, whose content FlatBuffers encodes.
_MESSAGE_HEADER, _DICTIONARY_DATA = 2, 1
_BUFFERS, _COMPRESSION = 2, 3
_STORED = -1
"""Length of a buffer that is not compressed although the others are."""


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
                rows = iter_rows(map(_valid, batches), batch_rows, self._file.expansion())
                for number, content in enumerate(rows, start=1):
                    yield RawRow(number, content)

    def _refuse_expansion(self, handle: BinaryIO) -> None:
        """Refuse a file whose compressed batches expand too much, before they are decompressed."""
        handle.seek(_FIRST_MESSAGE if handle.read(len(_FILE_MAGIC)) == _FILE_MAGIC else 0)
        expansion = self._file.expansion()
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


def decompressed_sizes(stream: BinaryIO) -> Iterator[int]:
    """Yield the size of each compressed dictionary and record batch when decompressed.

    Args:
        stream: File at the first message.

    Raises:
        pa.ArrowInvalid: A message is damaged.
    """
    for message in pa.ipc.MessageReader.open_stream(stream):
        if message.type in ("record batch", "dictionary"):
            try:
                yield _decompressed_size(message)
            except struct.error as error:
                raise pa.ArrowInvalid(f"a message is damaged: {error}") from error


def _decompressed_size(message: pa.ipc.Message) -> int:
    metadata, body = memoryview(message.metadata), memoryview(message.body)
    (root,) = struct.unpack_from("<I", metadata)
    batch = _table(metadata, root, _MESSAGE_HEADER)
    if message.type == "dictionary":
        batch = _table(metadata, batch, _DICTIONARY_DATA)
    if _field(metadata, batch, _COMPRESSION) is None or (field := _field(metadata, batch, _BUFFERS)) is None:
        return len(body)
    start = field + struct.unpack_from("<I", metadata, field)[0]
    (count,) = struct.unpack_from("<I", metadata, start)
    total = 0
    for offset, length in struct.iter_unpack("<qq", metadata[start + 4 : start + 4 + 16 * count]):
        if length:
            (size,) = struct.unpack_from("<q", body, offset)
            total += length if size == _STORED else size
    return total


def _field(metadata: memoryview, table: int, number: int) -> int | None:
    """Return the position of a field of a table of FlatBuffers; None if it is absent."""
    (distance,) = struct.unpack_from("<i", metadata, table)
    vtable = table - distance
    (size,) = struct.unpack_from("<H", metadata, vtable)
    entry = 4 + 2 * number
    (offset,) = struct.unpack_from("<H", metadata, vtable + entry) if entry < size else (0,)
    return table + offset if offset else None


def _table(metadata: memoryview, table: int, number: int) -> int:
    """Return the position of a table that is a field of another."""
    field = _field(metadata, table, number)
    if field is None:
        raise pa.ArrowInvalid("a message has no content")
    return field + int(struct.unpack_from("<I", metadata, field)[0])
