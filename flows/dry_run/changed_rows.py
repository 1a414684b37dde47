"""Find the rows that a run would compute, where it takes the others from the tables of an earlier run."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from flows.execution import unchanged_rows
from flows.planning.run_plan import RunPlan
from metric_core.stages import Stage
from tasks.tables.row_index import RowIndexes
from tasks.tables.table_store import StageRef
from tasks.tables.unchanged_rows import UnchangedRows


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """The changed rows of shards that a run would merge.

    Args:
        merged: Positions of the shards.
        packed: Samples of their changed rows, packed into shards of their own.
    """

    merged: Collection[int] = ()
    packed: Sequence[StageRef] = ()


def find_changed_rows(
    plan: RunPlan, recipes: Mapping[Stage, str], shards: Sequence[Mapping[Stage, StageRef]]
) -> ChangedRows:
    """Return the changed rows of the shards that the run would merge from the tables of an earlier run.

    There are none if a stage would be computed for all rows of a shard: it would read merged tables, which do not
    exist yet.

    Args:
        plan: Plan of the run.
        recipes: Recipes of the stages whose tables are cached; see `tasks.tables.row_index.RowIndex`.
        shards: Tables that are kept, shard by shard, including the samples.
    """
    metrics, storage = plan.metrics, plan.storage
    cached, root = metrics.cached_stages, storage.tables_root
    missing = [number for number, kept in enumerate(shards) if any(stage not in kept for stage in cached)]
    rows = sum(shards[number][Stage.SAMPLES].rows for number in missing)
    if rows < unchanged_rows.LEAST_ROWS or set(recipes) != set(cached):
        return ChangedRows()
    indexes = RowIndexes(root, plan.source.source or "")
    index = unchanged_rows.find_index(indexes, recipes, [shards[number] for number in missing])
    stages = [] if index is None else unchanged_rows.stages_to_take(index, recipes, metrics, storage.refresh)
    if index is None or set(stages) != set(recipes):
        return ChangedRows()
    unchanged = UnchangedRows(root, indexes, index, stages)
    splits = {number: unchanged.split(shards[number][Stage.SAMPLES]) for number in missing}
    merged = {number: split for number, split in splits.items() if split is not None}
    return ChangedRows(merged, unchanged.pack(list(merged.values()), storage.rows_a_shard))
