"""Store the results of a shard together again once they lie in many segments, so that reading a shard stays cheap."""

from collections.abc import Iterable

from tasks.engine.stage_step import EnginePlan
from tasks.rows.row_digests import row_keys
from tasks.rows.row_store import RowStore
from tasks.rows.shard import Shard

MAX_SEGMENTS = 8
"""Segments in which the results of a stage for a shard may lie before they are stored together."""


def compact(plan: EnginePlan, store: RowStore, shards: Iterable[Shard]) -> None:
    """Store the results of shards together that lie in many segments.

    Those of a source that comes in another order every time are stored together once: if that has left them in many
    segments again, it would do so every time.

    Args:
        shards: The shards, all of whose results are known.
    """
    for shard in shards:
        for stage, step in plan.steps.items():
            places = shard.places[stage]
            if step.recipe is None or len(places.segments) <= MAX_SEGMENTS:
                continue
            if store.count_compacted(places) > MAX_SEGMENTS:
                continue
            keys = row_keys(step.recipe, [shard.digests_of(earlier) for earlier in step.reads])
            rows, usage = store.read_rows(stage, places), store.usage_of(stage, places)
            shard.places[stage] = store.append(stage, step.recipe, rows, keys, usage, compacted=True)
