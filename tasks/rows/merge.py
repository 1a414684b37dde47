"""Select and sort rows of stage tables by sample."""

from collections.abc import Collection
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

LONG_RUN = 256
"""Mean length of runs of rows from which on a slice per run costs less than a copy of their rows: what reads the table
then meets a chunk per run in every column."""


def take_rows(table: pa.Table, rows: NDArray[np.int64]) -> pa.Table:
    """Return rows by number: `pyarrow.Table.take`, without a copy if most of the table is taken in long runs.

    Args:
        table: The table. The result may keep its memory.
        rows: Numbers of the rows, in the order of the result.

    >>> table = pa.table({"text": ["0", "1", "2", "3"]})
    >>> take_rows(table, np.array([3, 0, 1]))["text"].to_pylist()
    ['3', '0', '1']
    """
    starts = np.flatnonzero(np.diff(rows, prepend=-2) != 1)
    are_long = 0 < LONG_RUN * len(starts) <= len(rows)
    if not are_long or 2 * len(rows) < table.num_rows:
        return table.take(rows)
    runs = pairwise([*starts.tolist(), len(rows)])
    return pa.concat_tables([table.slice(int(rows[start]), end - start) for start, end in runs])


def select_rows(table: pa.Table, row_ids: Collection[str]) -> pa.Table:
    """Return the rows that belong to these samples, in the table's order.

    >>> table = pa.table({"row_id": ["a", "b", "a"], "text": ["1", "2", "3"]})
    >>> select_rows(table, {"a"})["text"].to_pylist()
    ['1', '3']
    """
    return take_rows(table, np.flatnonzero(pc.is_in(table["row_id"], value_set=_ids(row_ids)).to_numpy()))


def sort_rows(table: pa.Table, row_ids: pa.Array) -> pa.Table:
    """Return a table sorted by sample; the rows of one sample keep their order.

    Args:
        table: Table whose rows belong to these samples.
        row_ids: Ids of the samples, in order.

    >>> table = pa.table({"row_id": ["a", "c", "a"], "text": ["1", "2", "3"]})
    >>> sort_rows(table, pa.array(["c", "b", "a"]))["text"].to_pylist()
    ['2', '1', '3']
    """
    positions = find_positions(table, row_ids)
    if np.all(positions[:-1] <= positions[1:]):
        return table
    return take_rows(table, np.argsort(positions, kind="stable"))


def find_positions(table: pa.Table, row_ids: pa.Array) -> NDArray[np.int32]:
    """Return the position of each row's sample among these samples, to which all rows belong."""
    found: NDArray[np.int32] = pc.index_in(table["row_id"], value_set=row_ids).to_numpy()
    return found


def number_ranges(start: NDArray[np.integer], count: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the numbers from each start on, as many as its count.

    >>> number_ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    before = np.cumsum(count) - count
    rows: NDArray[np.int64] = np.repeat(start - before, count) + np.arange(int(count.sum()))
    return rows


def _ids(row_ids: Collection[str]) -> pa.Array:
    return pa.array(list(row_ids), pa.string())
