"""Convert Arrow record batches to rows, for Parquet, Arrow files and `datasets`."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from metric_core.errors import SourceError
from tasks.runtime.wording import quote_names
from tasks.sources.readers.protocol import Unreadable


def iter_rows(batches: Iterable[pa.RecordBatch], batch_rows: int) -> Iterator[dict[str, Any] | Unreadable]:
    """Yield the rows of batches of any size; convert `batch_rows` of them at a time to Python values."""
    for batch in batches:
        for start in range(0, batch.num_rows, batch_rows):
            yield from _as_rows(batch.slice(start, batch_rows))


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
