"""Give a rerun the results of the earlier run that it does not compute, from the folder of that run."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from metric_core.stages import Stage
from tasks.rows.places import Places
from tasks.rows.row_store import RowStore
from tasks.rows.stage_rows import StageRows
from tasks.runs.finished_run import FinishedRun
from tasks.runtime.usage import StageUsage


def place_earlier_rows(
    run: FinishedRun, is_computed: Callable[[Stage, str], bool], store: RowStore, stage: Stage, row_ids: pa.Array
) -> Places:
    """Return the places of the results of an earlier run, which the row store need not have any more.

    Args:
        is_computed: Returns whether a stage is computed for a row, so that its result is missing.
        store: Row store, to which the results are copied without their keys.
        row_ids: Ids of the rows.

    Raises:
        RunFolderError: The table of the stage cannot be read.
    """
    nothing, ids = Places.nothing(len(row_ids)), row_ids.to_pylist()
    positions = np.array([place for place, row in enumerate(ids) if not is_computed(stage, row)], np.int64)
    if not len(positions):
        return nothing
    chosen = row_ids.take(pa.array(positions))
    rows = StageRows.from_table(stage, run.rows(stage, chosen.to_pylist()), chosen)
    return nothing.fill(positions, store.append(stage, None, rows, rows.digests, StageUsage()))
