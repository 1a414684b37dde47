"""Find out how large the record batches of an Arrow file are when decompressed, before they are."""

import struct
from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa

# Field numbers of the tables in Message.fbs of Arrow, whose content FlatBuffers encodes.
_MESSAGE_HEADER, _DICTIONARY_DATA = 2, 1
_BUFFERS, _COMPRESSION = 2, 3
_STORED = -1
"""Length of a buffer that is not compressed although the others are."""


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
