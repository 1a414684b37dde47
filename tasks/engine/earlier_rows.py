"""Give a rerun the results of the earlier run that it does not compute, from the folder of that run."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from metric_core.stages import Stage
from tasks.engine.stage_rows import StageRows
from tasks.rows.placed_rows import PlacedRows
from tasks.rows.row_store import RowStore
from tasks.runs.finished_run import FinishedRun
from tasks.runtime.usage import StageUsage


class EarlierRows:
    """Results of an earlier run, which the row store need not have any more.

    Args:
        is_computed: Returns whether a stage is computed for a row, so that its result is not given.
        store: Row store, to which they are copied without their keys.
    """

    def __init__(self, run: FinishedRun, is_computed: Callable[[Stage, str], bool], store: RowStore) -> None:
        self._run = run
        self._is_computed = is_computed
        self.store = store

    def place(self, stage: Stage, row_ids: pa.Array) -> PlacedRows:
        """Return the places of the results of rows in a stage; -1 for those that are computed.

        Raises:
            RunFolderError: The table of the stage cannot be read.
        """
        nothing, ids = PlacedRows.nothing(len(row_ids)), row_ids.to_pylist()
        positions = np.array([place for place, row in enumerate(ids) if not self._is_computed(stage, row)], np.int64)
        if not len(positions):
            return nothing
        chosen = row_ids.take(pa.array(positions))
        rows = StageRows.from_table(stage, self._run.rows(stage, chosen.to_pylist()), chosen)
        complete = np.zeros(len(rows), bool)
        placed = self.store.append(
            stage, None, rows.table, rows.bounds, rows.digests, rows.digests, complete, StageUsage()
        )
        return nothing.fill(positions, placed)
