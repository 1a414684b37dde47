"""Compute the digest of each sample's rows in a stage table, and the keys of the results that follow from them.

The digest of a sample is that of the bytes of its cells, which are slices of a few streams: of each column whether its
cells are null, their values, the lengths of texts and lists, and the texts. The lengths come before what they
measure, so that different cells never give the same bytes.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from metric_core.schemas import SCHEMAS
from metric_core.stages import Stage
from tasks.rows.merge import find_positions

DIGEST_BYTES = 16

DIGEST = np.dtype((np.void, DIGEST_BYTES))

Digests: TypeAlias = NDArray[np.void]
"""Digests of type `DIGEST`, one per sample."""

_Bounds: TypeAlias = NDArray[np.int64]
_Parts: TypeAlias = Iterable[bytes]
"""The bytes of each sample in a stream."""

_IGNORED = "row_number"
"""The position of a row in its source: no stage reads it."""


def digest_rows(table: pa.Table, bounds: NDArray[np.int64], stage: Stage) -> Digests:
    """Return the digest of each sample: equal if and only if all cells of its rows are equal.

    The position of a row in its source is not part of it. An optional column without a value in the rows of a sample
    counts as absent, so that adding one to a schema changes no digest.

    Args:
        table: Table in the schema of the stage, with or without its optional columns, sorted by sample.
        bounds: Positions between the rows of the samples: those of sample i are `bounds[i]` to `bounds[i + 1]`.

    >>> table = pa.table({"row_id": ["a", "b"], "pair": ["p", "p"], "k": [0, 0], "cosine": [1.0, None],
    ...     "status": ["answered", "failed"], "reason": [None, "the reply was cut off"]})
    >>> digests = digest_rows(table, np.array([0, 1, 2]), Stage.SIMILARITY)
    >>> bool(digests[1] == digest_rows(table.slice(1), np.array([0, 1]), Stage.SIMILARITY)[0])
    True
    """
    schema = SCHEMAS[stage]
    columns = {field.name: field.type for field in schema.arrow if field.name != _IGNORED}
    stored = {
        name: _combine(table[name], kind)
        for name, kind in columns.items()
        if name not in schema.optional or name in table.column_names
    }
    counts = np.diff(bounds)
    streams: list[_Parts] = [_cut(counts, np.arange(len(bounds)))]
    streams += _streams([array for name, array in stored.items() if name not in schema.optional], bounds)
    for name, array in stored.items():
        if name in schema.optional and array.null_count < len(array):
            streams.append(_optional_parts(name, array, bounds))
    digests = [blake2b(b"".join(parts), digest_size=DIGEST_BYTES).digest() for parts in zip(*streams, strict=True)]
    return np.frombuffer(b"".join(digests), DIGEST)


def digest_cells(column: pa.ChunkedArray) -> NDArray[np.uint64]:
    """Return the digest of each cell of a column: equal if and only if the cells are, of columns of one type.

    >>> one, other = digest_cells(pa.chunked_array([[["a", "bc"], None, ["ab", "c"], ["a", "bc"]]])).reshape(2, 2).T
    >>> (one == other).tolist()
    [False, False]
    """
    array = _combine(column, column.type)
    streams = _streams([array], np.arange(len(array) + 1))
    digests = [blake2b(b"".join(parts), digest_size=8).digest() for parts in zip(*streams, strict=True)]
    return np.frombuffer(b"".join(digests), np.uint64)


def row_keys(recipe: str, inputs: Sequence[Digests]) -> Digests:
    """Return the key of each sample's result: equal if and only if the recipe and all of its inputs are equal.

    Args:
        recipe: Everything but the input tables that determines the result.
        inputs: Digests of the samples in each table that the stage reads, in the order in which it reads them; at
            least one table.
    """
    start = blake2b(blake2b(recipe.encode()).digest(), digest_size=DIGEST_BYTES)
    rows = np.stack([digests.view(np.uint8).reshape(-1, DIGEST_BYTES) for digests in inputs], axis=1)
    content, width = memoryview(rows.tobytes()), rows.shape[1] * DIGEST_BYTES
    keys = []
    for end in range(width, len(content) + 1, width):
        key = start.copy()
        key.update(content[end - width : end])
        keys.append(key.digest())
    return np.frombuffer(b"".join(keys), DIGEST)


def bounds_of(table: pa.Table, row_ids: pa.Array) -> NDArray[np.int64]:
    """Return the positions between the rows of the samples in a table.

    Args:
        table: Table whose rows belong to these samples, sorted by sample.
        row_ids: Ids of the samples, in order.

    >>> bounds_of(pa.table({"row_id": ["b", "a", "a"]}), pa.array(["b", "c", "a"])).tolist()
    [0, 1, 1, 3]
    """
    bounds: NDArray[np.int64] = np.searchsorted(find_positions(table, row_ids), np.arange(len(row_ids) + 1))
    return bounds


def _combine(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    array = column.cast(kind).combine_chunks()
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array


def _optional_parts(name: str, array: pa.Array, bounds: _Bounds) -> _Parts:
    """Return the bytes of each sample in an optional column, which are none where the column has no value."""
    values = np.concatenate([[0], np.cumsum(array.is_valid().to_numpy(zero_copy_only=False))])
    has_value = np.diff(values[bounds]).tolist()
    label = len(name).to_bytes(8, "little") + name.encode()
    streams = _streams([array], bounds)
    return [
        label + b"".join(parts) if has_value[sample] else b"" for sample, parts in enumerate(zip(*streams, strict=True))
    ]


def _streams(arrays: Sequence[pa.Array], bounds: _Bounds) -> list[_Parts]:
    """Return the streams of arrays of equal length: what has a fixed size per cell in one, then what it measures."""
    fixed: list[NDArray[np.uint8]] = []
    deeper: list[_Parts] = []
    for array in arrays:
        _append_streams(array, bounds, fixed, deeper)
    rows = np.concatenate(fixed, axis=1)
    return [_cut(rows, bounds), *deeper] if len(rows) else []


def _append_streams(array: pa.Array, bounds: _Bounds, fixed: list[NDArray[np.uint8]], deeper: list[_Parts]) -> None:
    kind = array.type
    fixed.append(_bytes_of(array.is_valid().to_numpy(zero_copy_only=False)))
    if pa.types.is_struct(kind):
        for member in array.flatten():  # null where the struct is null
            _append_streams(member, bounds, fixed, deeper)
    elif pa.types.is_list(kind):
        lengths = _without_nulls(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
        fixed.append(_bytes_of(lengths))
        deeper += _streams([array.flatten()], _ends(lengths)[bounds])  # without what lies below nulls
    elif pa.types.is_string(kind):
        texts = _without_nulls(array, "")
        starts = np.frombuffer(texts.buffers()[1] or bytes(4), np.int32)[texts.offset :][: len(texts) + 1]
        fixed.append(_bytes_of(np.diff(starts)))
        if starts[-1] > starts[0]:
            deeper.append(_cut(np.frombuffer(texts.buffers()[2], np.uint8), starts[bounds]))
    else:
        zero = False if pa.types.is_boolean(kind) else 0
        fixed.append(_bytes_of(_without_nulls(array, zero).to_numpy(zero_copy_only=False)))


def _without_nulls(array: pa.Array, value: object) -> pa.Array:
    """Return the array with a value in place of nulls, below which the bytes are arbitrary."""
    return pc.fill_null(array, pa.scalar(value, array.type)) if array.null_count else array


def _bytes_of(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    """Return the bytes of values of a fixed size, one row of bytes per value."""
    width = values.dtype.itemsize
    return np.ascontiguousarray(values).view(np.uint8).reshape(len(values), width)


def _ends(lengths: NDArray[np.int32]) -> _Bounds:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def _cut(values: NDArray[np.generic], bounds: NDArray[np.generic]) -> _Parts:
    """Return the bytes of the values of each sample."""
    width = values.itemsize * (values.shape[1] if values.ndim > 1 else 1)
    content = values[bounds[0] : bounds[-1]].tobytes()
    return [content[start:end] for start, end in pairwise(((bounds.astype(np.int64) - bounds[0]) * width).tolist())]
