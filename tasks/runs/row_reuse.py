"""Reuse rows of an earlier run in stage tables, alone or beside recomputed rows."""

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
    """A writer of tables that hold rows of an earlier run.

    Args:
        run: The earlier run.
        tables: Root of the table store.
    """

    run: FinishedRun
    tables: str

    def samples(self) -> list[StageRef]:
        """Return the samples of the earlier run, in its shards."""
        store = TableStore(self.tables)
        return [store.write(shard, SAMPLES) for shard in self.run.samples()]

    def reuse(self, stage: Stage, order: Sequence[str]) -> StageRef:
        """Return a stage's table with the earlier run's rows of these samples, sample after sample."""
        rows = self.run.rows(stage, order)
        return TableStore(self.tables).write(merge_tables(order, rows, rows.slice(0, 0)), SCHEMAS[stage])

    def merge(self, fresh: StageRef, order: Sequence[str], recomputed: Collection[str]) -> StageRef:
        """Return a stage's table with recomputed rows, and the earlier run's rows of the other samples.

        Args:
            fresh: Table of the recomputed rows.
            order: Ids of all samples of the shard.
            recomputed: Ids of the samples that they belong to.
        """
        old = self.run.rows(fresh.stage, [row_id for row_id in order if row_id not in recomputed])
        return TableStore(self.tables).write(merge_tables(order, old, read(fresh)), SCHEMAS[fresh.stage], fresh.usage)

    def select(self, ref: StageRef, row_ids: Collection[str]) -> StageRef:
        """Return the rows of a table that belong to these samples, as a new table."""
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
