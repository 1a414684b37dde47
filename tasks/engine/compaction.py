"""Store the results of a stage together again once they lie in many segments, so that reading them stays cheap."""

from collections.abc import Iterator, Sequence

from tasks.engine.lookup import read_known
from tasks.engine.stage_step import EnginePlan
from tasks.rows.row_digests import row_keys
from tasks.rows.row_store import RowStore
from tasks.rows.shard import Shard
from tasks.runtime.usage import StageUsage

MAX_SEGMENTS = 8
"""Segments in which the results of a stage may lie, however few shards there are."""

SEGMENTS_A_SHARD = 4
"""Segments per shard in which they may lie, on average."""


def compact(plan: EnginePlan, store: RowStore, shards: Sequence[Shard]) -> None:
    """Store the results of the stages together that lie in many segments, a segment per shard.

    A source that comes in another order has its results in as many segments as before, which are left as they are.

    Args:
        shards: The shards, all of whose results are known.
    """
    for stage, step in plan.steps.items():
        places = [shard.places[stage] for shard in shards]
        used = {segment for placed in places for segment in placed.segments}
        if step.recipe is None or len(used) <= max(MAX_SEGMENTS, SEGMENTS_A_SHARD * len(shards)):
            continue
        for shard, rows in zip(shards, store.read_shards(stage, places), strict=True):
            keys = row_keys(step.recipe, [shard.digests_of(earlier) for earlier in step.reads])
            shard.places[stage] = store.append(stage, step.recipe, rows, keys, store.usage_of([shard.places[stage]]))


def gather_known(plan: EnginePlan, store: RowStore, shards: Sequence[Shard]) -> Iterator[Shard]:
    """Yield shards that other processes compute, with copies of the results that they read if these lie scattered.

    Each process would decode all segments for each of its shards, as many as there are rows; here each is decoded once.
    Copies are never found, and removed when the table store is pruned.

    Args:
        shards: Packed shards, in the order in which they are computed.

    Raises:
        AssayError: A segment cannot be read, or a copy not written.
    """
    read = {stage for step in plan.steps.values() for stage in step.reads}
    segments = {stage: sum(len(shard.places[stage].segments) for shard in shards) for stage in plan.steps}
    scattered = {stage for stage in read.intersection(segments) if segments[stage] > SEGMENTS_A_SHARD * len(shards)}
    if not scattered:
        yield from shards
        return
    for shard, known in zip(shards, read_known(plan, store, shards, whole=True), strict=True):
        for stage in scattered.intersection(known):
            rows = known[stage]
            shard.places[stage] = store.append(stage, None, rows, rows.digests, StageUsage())
        yield shard
