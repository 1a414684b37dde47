"""Compute a digest per row of a samples table, from the buffers of its columns."""

import json
from collections.abc import Callable
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from metric_core.schemas import SAMPLES

DIGEST_BYTES = 16

_IGNORED = "row_number"
"""The position of a row in its source: no stage reads it."""

_NULL = b"\x00"

Cell: TypeAlias = Callable[[int], bytes]
"""Returns the content of the cell of a row, such that equal bytes mean equal cells and a cell ends where it says."""


def row_digests(samples: pa.Table) -> list[bytes]:
    """Return the digest of each row: equal if and only if its id and all cells that a stage can read are equal.

    Args:
        samples: Samples table.
    """
    cells = [_cells(samples[name]) for name in SAMPLES.arrow.names if name not in (_IGNORED, *SAMPLES.optional)]
    cells += [
        _optional_cells(name, samples[name])
        for name in SAMPLES.optional
        if name in samples.schema.names and samples[name].null_count < samples.num_rows
    ]
    return [
        blake2b(b"".join([cell(row) for cell in cells]), digest_size=DIGEST_BYTES).digest()
        for row in range(samples.num_rows)
    ]


def _cells(column: pa.ChunkedArray) -> Cell:
    if column.null_count == len(column):
        return lambda _row: _NULL
    array = pa.concat_arrays(column.chunks)
    if pa.types.is_string(array.type):
        return _text_cells(array)
    if pa.types.is_list(array.type) and pa.types.is_string(array.type.value_type) and not array.values.null_count:
        return _list_cells(array)
    values = array.to_pylist()
    return lambda row: _sized(json.dumps(values[row]).encode())


def _optional_cells(name: str, column: pa.ChunkedArray) -> Cell:
    """Return the cells of an optional column, which are empty where the column has no value."""
    cell, has_value, label = _cells(column), column.is_valid().to_pylist(), _sized(name.encode())
    return lambda row: label + cell(row) if has_value[row] else b""


def _text_cells(array: pa.StringArray) -> Cell:
    starts, data, is_valid = _starts(array), _data(array), array.is_valid().to_numpy(zero_copy_only=False).tolist()

    def cell(row: int) -> bytes:
        return _sized(data[starts[row] : starts[row + 1]]) if is_valid[row] else _NULL

    return cell


def _list_cells(array: pa.ListArray) -> Cell:
    starts, is_valid = _starts(array), array.is_valid().to_numpy(zero_copy_only=False).tolist()
    texts = array.values
    text_starts, data = _starts(texts), _data(texts)
    lengths = np.diff(np.asarray(text_starts, np.int64)).tobytes()

    def cell(row: int) -> bytes:
        if not is_valid[row]:
            return _NULL
        first, end = starts[row], starts[row + 1]
        return _sized(lengths[8 * first : 8 * end]) + bytes(data[text_starts[first] : text_starts[end]])

    return cell


def _sized(content: "bytes | memoryview") -> bytes:
    return b"\x01" + len(content).to_bytes(8, "little") + bytes(content)


def _starts(array: "pa.StringArray | pa.ListArray") -> list[int]:
    offsets = np.frombuffer(array.buffers()[1], np.int32)
    starts: list[int] = offsets[array.offset : array.offset + len(array) + 1].tolist()
    return starts


def _data(array: pa.StringArray) -> memoryview:
    buffer = array.buffers()[2]
    return memoryview(b"") if buffer is None else memoryview(buffer)
