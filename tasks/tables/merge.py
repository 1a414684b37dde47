"""Select and merge rows of stage tables by sample."""

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc


def select_rows(table: pa.Table, row_ids: Collection[str]) -> pa.Table:
    """Return the rows that belong to these samples, in the table's order.

    >>> table = pa.table({"row_id": ["a", "b", "a"], "text": ["1", "2", "3"]})
    >>> select_rows(table, {"a"})["text"].to_pylist()
    ['1', '3']
    """
    return table.filter(pc.is_in(table["row_id"], value_set=_ids(row_ids)))


def merge_tables(order: Sequence[str], reused: pa.Table, fresh: pa.Table) -> pa.Table:
    """Return the rows of both tables, sample by sample; the rows of one sample keep their order.

    Args:
        order: Ids of the samples, in order; rows of other samples are left out.
        reused: Rows of some of the samples.
        fresh: Rows of other samples, in the same schema.

    >>> reused = pa.table({"row_id": ["c", "a", "c"], "text": ["1", "2", "3"]})
    >>> fresh = pa.table({"row_id": ["b"], "text": ["4"]})
    >>> merge_tables(["a", "b", "c"], reused, fresh)["text"].to_pylist()
    ['2', '4', '1', '3']
    """
    both = select_rows(pa.concat_tables([reused, fresh]), order)
    positions = pc.index_in(both["row_id"], value_set=_ids(order))
    return both.take(pc.array_sort_indices(positions))


def _ids(row_ids: Collection[str]) -> pa.Array:
    return pa.array(list(row_ids), pa.string())
