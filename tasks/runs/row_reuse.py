"""Carries rows of an earlier run over into stage tables, as they are or beside rows that were computed anew."""

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
    """Writes tables that hold rows of an earlier run.

    Args:
        run: the earlier run.
        tables: root of the store of stage tables.
    """

    run: FinishedRun
    tables: str

    def samples(self) -> list[StageRef]:
        """The samples of the earlier run, in its shards."""
        store = TableStore(self.tables)
        return [store.write(shard, SAMPLES) for shard in self.run.samples()]

    def kept(self, stage: Stage, order: Sequence[str]) -> StageRef:
        """A stage's table with the earlier run's rows of these samples, sample after sample."""
        rows = self.run.rows(stage, order)
        return TableStore(self.tables).write(merge_tables(order, rows, rows.slice(0, 0)), SCHEMAS[stage])

    def merged(self, fresh: StageRef, order: Sequence[str], anew: Collection[str]) -> StageRef:
        """A stage's table with rows that were computed anew, and the earlier run's rows of the other samples.

        Args:
            fresh: the rows that were computed anew.
            order: ids of all samples of the shard.
            anew: ids of the samples whose rows they are.
        """
        old = self.run.rows(fresh.stage, [row_id for row_id in order if row_id not in anew])
        return TableStore(self.tables).write(merge_tables(order, old, read(fresh)), SCHEMAS[fresh.stage], fresh.usage)

    def part(self, ref: StageRef, row_ids: Collection[str]) -> StageRef:
        """The rows of a table that belong to these samples, as a table of their own."""
        return TableStore(self.tables).write(select_rows(read(ref), row_ids), SCHEMAS[ref.stage])


def row_ids(samples: StageRef) -> list[str]:
    """The ids of the samples of a shard, in its order."""
    ids: list[str] = read(samples)["row_id"].to_pylist()
    return ids


def find_changes(run: FinishedRun, samples: Sequence[StageRef]) -> RowChanges:
    """How the samples of a run differ from those of an earlier one."""
    return find_row_changes(run.samples(), _tables(samples))


def _tables(refs: Sequence[StageRef]) -> Iterator[pa.Table]:
    return (read(ref) for ref in refs)
