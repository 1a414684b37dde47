"""Rows out of Arrow tables, which Parquet, Arrow files and `datasets` have in common."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from metric_core.errors import SourceError
from tasks.runtime.wording import quote_names
from tasks.sources.readers.protocol import Unreadable


def iter_rows(batches: Iterable[pa.RecordBatch], batch_rows: int) -> Iterator[dict[str, Any] | Unreadable]:
    """The rows of batches of any size, `batch_rows` of them at a time as Python values."""
    for batch in batches:
        for start in range(0, batch.num_rows, batch_rows):
            yield from _as_rows(batch.slice(start, batch_rows))


def require_unique(names: Iterable[str], source_name: str) -> list[str]:
    """Column names, as long as each is there once.

    Raises:
        SourceError: two columns have one name.
    """
    every = list(names)
    twice = [name for name, count in Counter(every).items() if count > 1]
    if twice:
        raise SourceError(f"{source_name} has two columns named {quote_names(twice)}; rename one")
    return every


def _as_rows(batch: pa.RecordBatch) -> list[dict[str, Any] | Unreadable]:
    try:
        rows: list[dict[str, Any] | Unreadable] = batch.to_pylist()
    except (ValueError, OverflowError, pa.ArrowException) as error:
        if batch.num_rows == 1:
            return [Unreadable(f"a value that can not be read: {error}")]
        return [row for index in range(batch.num_rows) for row in _as_rows(batch.slice(index, 1))]
    return rows
