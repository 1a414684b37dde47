"""Rows of stage tables by the samples they belong to: taken out, and put together with others of the same stage."""

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc


def select_rows(table: pa.Table, row_ids: Collection[str]) -> pa.Table:
    """The rows that belong to these samples, in the table's order.

    >>> table = pa.table({"row_id": ["a", "b", "a"], "text": ["1", "2", "3"]})
    >>> select_rows(table, {"a"})["text"].to_pylist()
    ['1', '3']
    """
    return table.filter(pc.is_in(table["row_id"], value_set=_ids(row_ids)))


def merge_tables(order: Sequence[str], kept: pa.Table, fresh: pa.Table) -> pa.Table:
    """Both tables' rows, sample after sample; the rows of one sample stay in the order they had.

    Args:
        order: the ids of the samples; rows of any other are left out.
        kept: rows of some of the samples.
        fresh: rows of others, in the same schema.

    >>> kept = pa.table({"row_id": ["c", "a", "c"], "text": ["1", "2", "3"]})
    >>> fresh = pa.table({"row_id": ["b"], "text": ["4"]})
    >>> merge_tables(["a", "b", "c"], kept, fresh)["text"].to_pylist()
    ['2', '4', '1', '3']
    """
    both = select_rows(pa.concat_tables([kept, fresh]), order)
    positions = pc.index_in(both["row_id"], value_set=_ids(order))
    return both.take(pc.array_sort_indices(positions))


def _ids(row_ids: Collection[str]) -> pa.Array:
    return pa.array(list(row_ids), pa.string())
