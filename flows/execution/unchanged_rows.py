"""Take unchanged rows from the tables of an earlier run, so that a night costs what has changed since the last one."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from flows.execution.run import Run
from flows.execution.shard_run import LOOKUPS_AT_ONCE, ShardRun, compute_shards
from flows.execution.stage_submitter import StageSubmitter
from flows.planning.metric_plan import MetricPlan
from metric_core.stages import Stage
from tasks.runtime.threads import map_threads
from tasks.tables.row_index import RowIndex, RowIndexes
from tasks.tables.table_store import StageRef
from tasks.tables.unchanged_rows import PartlyChanged, UnchangedRows

LEAST_ROWS = 200
"""Rows in shards with missing tables from which on the rows of earlier runs are looked up: for fewer, looking up their
answers costs little, and counts each question."""

ShardTables = Mapping[Stage, StageRef]
"""The tables of a shard, by stage."""


def take_unchanged_rows(
    run: Run, submitter: StageSubmitter, shards: Sequence[ShardTables], indexes: RowIndexes
) -> list[ShardTables]:
    """Return the tables of all shards, with those that could be merged from the tables of an earlier run.

    The changed rows of these shards are computed, packed together.

    Args:
        run: The run.
        submitter: Its submitter.
        shards: Tables that are kept, shard by shard, including the samples.
        indexes: Indexes of the table store.
    """
    recipes, tables = submitter.recipes(), list(shards)
    missing = [number for number, kept in enumerate(shards) if any(stage not in kept for stage in recipes)]
    if sum(shards[number][Stage.SAMPLES].rows for number in missing) < LEAST_ROWS:
        return tables
    index = find_index(indexes, recipes, [shards[number] for number in missing])
    stages = [] if index is None else stages_to_take(index, recipes, run.plan.metrics, run.plan.storage.refresh)
    if index is None or not stages:
        return tables
    unchanged = UnchangedRows(run.tables, indexes, index, stages)
    splits = {number: unchanged.split(shards[number][Stage.SAMPLES]) for number in missing}
    merged = {number: split for number, split in splits.items() if split is not None}
    fresh = _compute_changed(run, submitter, unchanged, list(merged.values()), len(shards))
    merge = partial(_merge, submitter, unchanged, fresh)
    done = map_threads(lambda number: merge(tables[number], merged[number]), merged, LOOKUPS_AT_ONCE)
    for number, shard in zip(merged, done, strict=True):
        tables[number] = shard
    return tables


def index_rows(submitter: StageSubmitter, shards: Sequence[ShardTables], indexes: RowIndexes) -> None:
    """Remember in which tables the rows of a run are, if it has enough rows for that to pay.

    Args:
        submitter: Submitter of the run.
        shards: Tables of all shards.
        indexes: Indexes of the table store.
    """
    recipes = submitter.recipes()
    if recipes and sum(shard[Stage.SAMPLES].rows for shard in shards) >= LEAST_ROWS:
        indexes.write(recipes, shards)


def find_index(indexes: RowIndexes, recipes: Mapping[Stage, str], shards: Sequence[ShardTables]) -> RowIndex | None:
    """Return the index of the earlier run that has the rows of shards; None if there is none.

    Args:
        indexes: Indexes of the table store.
        recipes: Recipes of the stages.
        shards: Tables of the shards.
    """
    return indexes.closest(recipes, b"".join(indexes.digests(shard[Stage.SAMPLES]) for shard in shards))


def stages_to_take(
    index: RowIndex, recipes: Mapping[Stage, str], metrics: MetricPlan, refreshed: Collection[Stage]
) -> list[Stage]:
    """Return the stages that the earlier run computed in the same way, as it did all that they read.

    Args:
        index: Rows of the earlier run.
        recipes: Recipes of the stages.
        metrics: Metrics of the run.
        refreshed: Stages to compute in any case.
    """
    stages: list[Stage] = []
    for stage in metrics.sharded_stages:
        inputs = set(metrics.inputs_of(stage)) - {Stage.SAMPLES}
        if (
            stage in recipes
            and stage not in refreshed
            and index.recipes.get(stage) == recipes[stage]
            and inputs.issubset(stages)
        ):
            stages.append(stage)
    return stages


def _compute_changed(
    run: Run, submitter: StageSubmitter, unchanged: UnchangedRows, splits: Sequence[PartlyChanged], first: int
) -> list[ShardTables]:
    """Compute the changed rows of shards in shards of their own, and return the tables of those."""
    packed = unchanged.pack(splits, run.plan.storage.rows_a_shard)
    found = map_threads(submitter.find_all, packed, LOOKUPS_AT_ONCE)
    shards = [ShardRun(first + number, tables, submitter) for number, tables in enumerate(found)]
    compute_shards(run.plan, shards, list(unchanged.stages))
    return [shard.tables for shard in shards]


def _merge(
    submitter: StageSubmitter,
    unchanged: UnchangedRows,
    fresh: Sequence[ShardTables],
    kept: ShardTables,
    split: PartlyChanged,
) -> ShardTables:
    tables = dict(kept)
    for stage in _missing(unchanged.stages, kept):
        merged = unchanged.merge(split, stage, [shard[stage] for shard in fresh])
        if merged is None or any(earlier not in tables for earlier in submitter.plan.inputs_of(stage)):
            break
        tables[stage] = merged.ref
        if merged.is_complete:
            submitter.keep(stage, tables)
    return tables


def _missing(stages: Collection[Stage], tables: ShardTables) -> list[Stage]:
    return [stage for stage in stages if stage not in tables]
