"""Convert Arrow record batches to rows, for Parquet, Arrow files and `datasets`."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from metric_core.errors import SourceError
from tasks.runtime.wording import quote_names
from tasks.sources.readers import read_limits
from tasks.sources.readers.protocol import Unreadable
from tasks.sources.readers.read_limits import BATCH_BYTES, Expansion, row_problem
from tasks.sources.readers.value_sizes import row_sizes

_SIZED_ROWS = 1 << 16
"""Rows whose sizes are found at a time: a batch of empty rows may have any number of them."""


def iter_rows(
    batches: Iterable[pa.RecordBatch], batch_rows: int, expansion: Expansion
) -> Iterator[dict[str, Any] | Unreadable]:
    """Yield the rows of batches of any size; convert a bounded number and size of them at a time to Python values.

    Args:
        batch_rows: Maximum number of rows that are converted at a time.
        expansion: Count of the bytes that the rows have as Python values.

    Raises:
        SourceError: The rows expand too much, or a column has a type that rows cannot have.
    """
    for batch in (each.slice(first, _SIZED_ROWS) for each in batches for first in range(0, len(each), _SIZED_ROWS)):
        ends = np.concatenate(([0], np.cumsum(row_sizes(batch))))
        start = 0
        while start < batch.num_rows:
            fitting = int(np.searchsorted(ends, ends[start] + BATCH_BYTES, side="right")) - 1
            if ends[start + 1] - ends[start] > read_limits.MAX_ROW_BYTES:
                expansion.add(read_limits.MAX_ROW_BYTES)
                yield Unreadable(row_problem())
                start += 1
                continue
            stop = min(max(fitting, start + 1), start + batch_rows)
            too_large = np.flatnonzero(np.diff(ends[start : stop + 1]) > read_limits.MAX_ROW_BYTES)
            stop = start + int(too_large[0]) if len(too_large) else stop
            expansion.add(int(ends[stop] - ends[start]))
            yield from _as_rows(batch.slice(start, stop - start))
            start = stop


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
