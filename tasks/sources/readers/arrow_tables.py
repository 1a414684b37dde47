"""Convert Arrow record batches to rows, for Parquet, Arrow files and `datasets`."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metric_core.errors import SourceError
from tasks.runtime.wording import quote_names
from tasks.sources.read_limits import BATCH_BYTES, ROW_HINT, ReadLimits
from tasks.sources.readers.protocol import Unreadable


def iter_rows(
    batches: Iterable[pa.RecordBatch], batch_rows: int, limits: ReadLimits
) -> Iterator[dict[str, Any] | Unreadable]:
    """Yield the rows of batches of any size; convert a bounded number and size of them at a time to Python values."""
    for batch in batches:
        ends = np.concatenate(([0], np.cumsum(_row_bytes(batch))))
        start = 0
        while start < batch.num_rows:
            fitting = int(np.searchsorted(ends, ends[start] + BATCH_BYTES, side="right")) - 1
            if ends[start + 1] - ends[start] > limits.row_bytes:
                yield Unreadable(limits.row_problem, ROW_HINT)
                start += 1
                continue
            stop = min(max(fitting, start + 1), start + batch_rows)
            too_large = np.flatnonzero(np.diff(ends[start : stop + 1]) > limits.row_bytes)
            stop = start + int(too_large[0]) if len(too_large) else stop
            yield from _as_rows(batch.slice(start, stop - start))
            start = stop


def _row_bytes(batch: pa.RecordBatch) -> Any:
    """Return the approximate size of each row as Python values, without creating them."""
    return sum((_value_bytes(column) for column in batch.columns), np.zeros(batch.num_rows))


def _value_bytes(array: pa.Array) -> Any:
    kind = array.type
    if pa.types.is_dictionary(kind):
        sizes = np.append(_value_bytes(array.dictionary), 0.0)
        return sizes[array.indices.fill_null(len(sizes) - 1).to_numpy(zero_copy_only=False)]
    if pa.types.is_struct(kind):
        return sum((_value_bytes(array.field(i)) for i in range(kind.num_fields)), np.full(len(array), 8.0))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        pairs = [array.keys, array.items] if pa.types.is_map(kind) else [array.values]
        ends = np.concatenate(([0.0], np.cumsum(sum(_value_bytes(values) + 8.0 for values in pairs))))
        offsets = array.offsets.to_numpy()
        return ends[offsets[1:]] - ends[offsets[:-1]] + 8.0
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        return pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False).astype(float) + 8.0
    return np.full(len(array), 8.0)


def require_unique(names: Iterable[str], source_name: str) -> list[str]:
    """Return the column names if they are unique.

    Raises:
        SourceError: Two columns have the same name.
    """
    every = list(names)
    duplicates = [name for name, count in Counter(every).items() if count > 1]
    if duplicates:
        raise SourceError(f"{source_name} has two columns named {quote_names(duplicates)}; rename one")
    return every


def _as_rows(batch: pa.RecordBatch) -> list[dict[str, Any] | Unreadable]:
    try:
        rows: list[dict[str, Any] | Unreadable] = batch.to_pylist()
    except (ValueError, OverflowError, pa.ArrowException) as error:
        if batch.num_rows == 1:
            return [Unreadable(f"a value that cannot be read: {error}")]
        return [row for index in range(batch.num_rows) for row in _as_rows(batch.slice(index, 1))]
    return rows
