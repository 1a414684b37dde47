"""Look up the results of rows before anything is computed, and pack the rows that lack some into shards."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from metric_core.stages import Stage
from tasks.engine.stage_step import EnginePlan
from tasks.rows.places import Places
from tasks.rows.row_digests import digest_rows, row_keys
from tasks.rows.row_store import RowStore
from tasks.rows.shard import Shard
from tasks.rows.stage_rows import StageRows, bounds_from
from tasks.rows.table_store import Samples

Given: TypeAlias = Callable[[RowStore, Stage, pa.Array], Places]
"""Returns the places of results that are taken as they are, by stage and row id; the others are missing."""


def look_up(plan: EnginePlan, store: RowStore, number: int, samples: Samples, given: Given | None = None) -> Shard:
    """Return a shard of the source with the places of the results that are stored.

    The result of a stage can be looked up once the results of the stages that it reads are known.

    Args:
        number: Number of the shard.
        given: Results that are taken as they are, whatever the row store has.

    Raises:
        AssayError: The samples cannot be read.
    """
    table = samples.read()
    everything = np.arange(table.num_rows + 1)
    digests = digest_rows(table, everything, Stage.SAMPLES)
    shard = Shard(number, (samples,), ((number, everything[:-1]),), digests, {})
    row_ids = table["row_id"].combine_chunks()
    known = {Stage.SAMPLES: np.ones(len(shard), bool)}
    for stage, step in plan.steps.items():
        places = Places.nothing(len(shard)) if given is None else given(store, stage, row_ids)
        if step.recipe is not None and not step.refresh:
            positions = np.flatnonzero(np.logical_and.reduce([places.missing, *(known[each] for each in step.reads)]))
            keys = row_keys(step.recipe, [shard.digests_of(each)[positions] for each in step.reads])
            places = places.fill(positions, store.find(stage, step.recipe, keys))
        shard.places[stage], known[stage] = places, ~places.missing
    return shard


def read_known(plan: EnginePlan, store: RowStore, shards: Sequence[Shard]) -> Iterator[dict[Stage, StageRows]]:
    """Yield the results that the missing stages of each shard read, if all of a stage are stored.

    Args:
        shards: Packed shards, in the order in which they are computed.

    Raises:
        AssayError: A segment cannot be read.
    """
    read = [
        {stage for each in shard.missing for stage in plan.steps[each].reads} - {*shard.missing, Stage.SAMPLES}
        for shard in shards
    ]
    tables = {
        stage: store.read_shards(
            stage, [shard.places[stage] for shard, own in zip(shards, read, strict=True) if stage in own]
        )
        for stage in set().union(*read)
    }
    for shard, own in zip(shards, read, strict=True):
        places = {stage: shard.places[stage] for stage in own}
        yield {
            stage: StageRows(next(tables[stage]), bounds_from(placed.count), placed.digests)
            for stage, placed in places.items()
        }


def pack_shards(shards: Sequence[Shard], rows: int) -> Iterator[Shard]:
    """Yield the rows that lack a result, packed into shards of their own.

    Args:
        shards: Shards of the source, in the order of their numbers.
        rows: Maximum number of rows per packed shard.
    """
    chosen: list[tuple[Shard, NDArray[np.int64]]] = []
    room, number = rows, 0
    for shard in shards:
        positions = shard.find_incomplete()
        while len(positions):
            chosen.append((shard, positions[:room]))
            positions = positions[room:]
            room -= len(chosen[-1][1])
            if not room:
                yield Shard.gather(number, chosen)
                chosen, room, number = [], rows, number + 1
    if chosen:
        yield Shard.gather(number, chosen)
