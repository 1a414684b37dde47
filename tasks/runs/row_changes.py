"""Find the rows that were added, removed or changed between two runs, and the columns that changed.

Rows are compared by digests of their cells: in memory are one shard, and the id and eight bytes per filled column of
each row.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from metric_core.schemas import SAMPLES
from tasks.rows.row_digests import digest_cells

_NOT_CONTENT = ("row_id", "row_number")
CONTENT: tuple[str, ...] = tuple(field.name for field in SAMPLES.fields if field.name not in _NOT_CONTENT)
"""The columns of a samples table that are compared; the position of a row in its source is not content."""


@dataclass(frozen=True, slots=True)
class RowChanges:
    """The differences between the rows of a run and those of an earlier run.

    Args:
        added: Ids of the rows that only the later run has.
        removed: Ids of the rows that only the earlier run has.
        changed: Mapping from row id to the columns that differ, for changed rows that both runs have.
        unchanged: Number of rows that are equal in both runs.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: Mapping[str, tuple[str, ...]]
    unchanged: int


def find_row_changes(earlier: Iterable[pa.Table], later: Iterable[pa.Table]) -> RowChanges:
    """Compare the samples of two runs by their row ids.

    Args:
        earlier: Samples tables of the earlier run, shard by shard.
        later: Samples tables of the later run, shard by shard.
    """
    before, after = _Content.read(earlier), _Content.read(later)
    found = pc.fill_null(pc.index_in(after.ids, value_set=before.ids), -1).to_numpy()
    both = np.flatnonzero(found >= 0)
    is_removed = np.ones(len(before.ids), bool)
    is_removed[found[both]] = False
    differing = _find_differing(before, found[both], after, both)
    is_changed = differing != 0
    names = {columns: _names(columns) for columns in np.unique(differing).tolist()}
    changed = (names[columns] for columns in differing[is_changed].tolist())
    return RowChanges(
        added=after.ids_of(np.flatnonzero(found < 0)),
        removed=before.ids_of(np.flatnonzero(is_removed)),
        changed=dict(zip(after.ids_of(both[is_changed]), changed, strict=True)),
        unchanged=int((~is_changed).sum()),
    )


def _find_differing(
    before: "_Content", earlier: NDArray[np.int32], after: "_Content", later: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the columns in which rows differ, as bits.

    Args:
        earlier: Numbers of the rows in the earlier run.
        later: Numbers of the same rows in the later run.
    """
    differing = np.zeros(len(earlier), np.int64)
    for number, name in enumerate(CONTENT):
        if name in before.cells or name in after.cells:
            is_other = before.column(name)[earlier] != after.column(name)[later]
            differing |= is_other.astype(np.int64) << number
    return differing


def _names(columns: int) -> tuple[str, ...]:
    """Return the columns whose bits are set."""
    return tuple(name for number, name in enumerate(CONTENT) if columns >> number & 1)


@dataclass(frozen=True, eq=False, slots=True)
class _Content:
    """The rows of a run.

    Args:
        ids: Id of each row.
        cells: Column -> digest of its cell in each row; columns without a value are left out.
    """

    ids: pa.Array
    cells: Mapping[str, NDArray[np.uint64]]

    @classmethod
    def read(cls, shards: Iterable[pa.Table]) -> Self:
        """Read the samples of a run, shard by shard."""
        ids = [pa.array([], pa.string())]
        cells: dict[str, list[NDArray[np.uint64]]] = {}
        rows = 0
        for shard in shards:
            filled = {name for name in CONTENT if shard[name].null_count < shard.num_rows}
            for name in filled.difference(cells):
                cells[name] = [_no_value(name, rows)]
            for name, parts in cells.items():
                parts.append(digest_cells(shard[name]) if name in filled else _no_value(name, shard.num_rows))
            ids += shard["row_id"].cast(pa.string()).chunks
            rows += shard.num_rows
        return cls(pa.concat_arrays(ids), {name: np.concatenate(parts) for name, parts in cells.items()})

    def ids_of(self, numbers: NDArray[np.int64]) -> tuple[str, ...]:
        """Return the ids of rows by their numbers."""
        return tuple(self.ids.take(pa.array(numbers)).to_pylist())

    def column(self, name: str) -> NDArray[np.uint64]:
        """Return the digest of each row's cell in a column."""
        cells = self.cells.get(name)
        return _no_value(name, len(self.ids)) if cells is None else cells


def _no_value(name: str, rows: int) -> NDArray[np.uint64]:
    """Return the digest of a null in a column, for each of some rows, without taking memory for each."""
    null = pa.chunked_array([pa.nulls(1, SAMPLES.arrow.field(name).type)])
    return np.broadcast_to(digest_cells(null), rows)
