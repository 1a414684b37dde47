"""Measure how much of its baseline's rows and values a run covers."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tasks.comparison.run_differences import TEST_COLUMNS
from tasks.comparison.run_pair import RunPair, RunRows
from tasks.comparison.written_rows import find_written
from tasks.record.outcome import OutcomeCoverage
from tasks.runs.row_changes import CONTENT
from tasks.runs.row_grouping import ROW_ID

_EXTRAS = "extras"
_NOTHING: tuple[Any, ...] = (None, "", [], {})
_WATCHED = tuple(name for name in CONTENT if name not in {*TEST_COLUMNS, _EXTRAS})


def measure_coverage(pair: RunPair) -> OutcomeCoverage:
    """Return what a run has of its baseline.

    A cell without text or items has no value.

    Raises:
        RunFolderError: A table cannot be read.
    """
    assert pair.a is not None  # noqa: S101 a baseline is what this is about
    before, after = set(pair.a.keys.values()), set(pair.b.keys.values())
    both = before & after
    retired = find_written(pair.a, before - after)
    old, new = (dict(_filled_columns(rows)) for rows in (pair.a, pair.b))
    had = Counter(column for row in both for column in old[row])
    has = Counter(column for row in both for column in old[row] & new[row])
    return OutcomeCoverage(
        rows=(len(both), len(before)),
        others=len(after - before),
        retired=retired.count,
        retired_from=retired.documents,
        values={column: (has[column], count) for column, count in sorted(had.items()) if has[column] < count},
    )


def _filled_columns(rows: RunRows) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the name of each row and the columns in which it has a value."""
    for shard in rows.samples():
        filled: list[set[str]] = [set() for _ in range(len(shard))]
        for column in _WATCHED:
            for place in pc.indices_nonzero(_has_value(shard[column])).to_pylist():
                filled[place].add(column)
        for place, text in enumerate(shard[_EXTRAS].to_pylist()):
            cells: Mapping[str, Any] = json.loads(text or "{}")
            filled[place].update(name for name, cell in cells.items() if cell not in _NOTHING)
        yield from zip(shard[ROW_ID].to_pylist(), map(frozenset, filled), strict=True)


def _has_value(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    lengths = pc.list_value_length(cells) if pa.types.is_list(cells.type) else pc.binary_length(cells)
    return pc.fill_null(pc.greater(lengths, 0), fill_value=False)
