"""Sort the rows of stage tables by sample, and cut them into windows of samples.

A stored table is sorted by sample, in the order of its samples table, whatever windows it was computed in and whatever
rows of earlier tables it contains. So equal inputs give equal tables.
"""

from itertools import pairwise

import numpy as np
import pyarrow as pa

from tasks.tables.merge import find_positions, sort_rows


class SampleOrder:
    """The order of the samples of a shard, and their windows.

    Args:
        samples: Samples table.
        rows: Number of samples per window.

    >>> order = SampleOrder(pa.table({"row_id": ["b", "a", "c"]}), rows=2)
    >>> table = pa.table({"row_id": ["a", "c", "b", "a"], "text": ["1", "2", "3", "4"]})
    >>> order.sort(table)["text"].to_pylist()
    ['3', '1', '4', '2']
    >>> [part["text"].to_pylist() for part in order.cut(order.sort(table), range(order.windows))]
    [['3', '1', '4'], ['2']]
    """

    def __init__(self, samples: pa.Table, rows: int) -> None:
        self._ids = samples["row_id"].combine_chunks()
        self._rows = rows
        self.windows = max(1, -(-samples.num_rows // rows))

    def sort(self, table: pa.Table) -> pa.Table:
        """Return a stage's table sorted by sample; the rows of one sample keep their order."""
        return sort_rows(table, self._ids)

    def cut(self, table: pa.Table, windows: range) -> list[pa.Table]:
        """Return the parts of a sorted table that belong to windows, which all its samples belong to.

        Args:
            table: Table sorted by sample.
            windows: Numbers of the windows, from 0.
        """
        starts = np.arange(windows.start, windows.stop + 1) * self._rows
        bounds = np.searchsorted(find_positions(table, self._ids), starts)
        return [table.slice(start, end - start) for start, end in pairwise(bounds)]
