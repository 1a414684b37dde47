"""Store the results of a shard together again once they lie in many segments, so that reading a shard stays cheap."""

from collections.abc import Iterable

from metric_core.stages import Stage
from tasks.engine.computation import read_rows
from tasks.engine.lookup import LookedUpShard
from tasks.engine.stage_step import EnginePlan
from tasks.rows.row_digests import row_keys
from tasks.rows.row_store import RowStore

MAX_SEGMENTS = 8
"""Segments in which the results of a stage for a shard may lie before they are stored together."""


def compact(plan: EnginePlan, store: RowStore, shards: Iterable[LookedUpShard]) -> None:
    """Store the results of shards together that lie in many segments.

    Those of a source that comes in another order every time are stored together once: if that has left them in many
    segments again, it would do so every time.

    Args:
        shards: The shards, all of whose results are known.
    """
    for shard in shards:
        digests = {Stage.SAMPLES: shard.digests, **{stage: placed.digests for stage, placed in shard.placed.items()}}
        for stage, step in plan.steps.items():
            placed = shard.placed[stage]
            if step.recipe is None or len(placed.segments) <= MAX_SEGMENTS:
                continue
            if store.count_compacted(placed) > MAX_SEGMENTS:
                continue
            rows = read_rows(store, stage, placed)
            keys = row_keys(step.recipe, [digests[earlier] for earlier in step.reads])
            complete, usage = ~rows.find_failed(stage), store.usage_of(stage, placed)
            shard.placed[stage] = store.append(
                stage, step.recipe, rows.table, rows.bounds, keys, rows.digests, complete, usage, compacted=True
            )
