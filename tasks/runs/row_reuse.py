"""Reuse rows of an earlier run in stage tables, alone or merged with recomputed rows."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from metric_core.schemas import SAMPLES, SCHEMAS
from metric_core.stages import Stage
from tasks.runs.finished_run import FinishedRun
from tasks.tables.merge import merge_tables, select_rows
from tasks.tables.row_changes import RowChanges, find_row_changes
from tasks.tables.table_store import StageRef, TableStore, read


@dataclass(frozen=True, slots=True)
class RowReuse:
    """A writer of stage tables that contain rows of an earlier run.

    Args:
        run: Earlier run.
        tables: Root of the table store.
    """

    run: FinishedRun
    tables: str

    def samples(self) -> list[StageRef]:
        """Write the samples of the earlier run, in its shards, and return the references."""
        store = TableStore(self.tables)
        return [store.write(shard, SAMPLES) for shard in self.run.samples()]

    def reuse(self, stage: Stage, order: Sequence[str]) -> StageRef:
        """Write a stage's table of the earlier run's rows of these samples, in this order."""
        rows = self.run.rows(stage, order)
        return TableStore(self.tables).write(merge_tables(order, rows, rows.slice(0, 0)), SCHEMAS[stage])

    def merge(self, fresh: StageRef, order: Sequence[str], recomputed: Collection[str]) -> StageRef:
        """Write a stage's table of recomputed rows and of the earlier run's rows of the other samples.

        Args:
            fresh: Table of the recomputed rows.
            order: Ids of all samples of the shard.
            recomputed: Ids of the recomputed samples.
        """
        old = self.run.rows(fresh.stage, [row_id for row_id in order if row_id not in recomputed])
        return TableStore(self.tables).write(merge_tables(order, old, read(fresh)), SCHEMAS[fresh.stage], fresh.usage)

    def select(self, ref: StageRef, row_ids: Collection[str]) -> StageRef:
        """Write the rows of a table that belong to these samples as a new table."""
        return TableStore(self.tables).write(select_rows(read(ref), row_ids), SCHEMAS[ref.stage])


def row_ids(samples: StageRef) -> list[str]:
    """Return the ids of the samples of a shard, in its order."""
    ids: list[str] = read(samples)["row_id"].to_pylist()
    return ids


def find_changes(run: FinishedRun, samples: Sequence[StageRef]) -> RowChanges:
    """Return the changes from the samples of an earlier run to those of a new one."""
    return find_row_changes(run.samples(), _tables(samples))


def _tables(refs: Sequence[StageRef]) -> Iterator[pa.Table]:
    return (read(ref) for ref in refs)
