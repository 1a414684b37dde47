"""Look up the results of rows before anything is computed, and pack the rows that lack some into shards."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from metric_core.stages import Stage
from tasks.engine.stage_step import EnginePlan, StageStep
from tasks.rows.mapped_arrays import MappedArrays
from tasks.rows.places import Places
from tasks.rows.row_digests import Digests, digest_rows, row_keys
from tasks.rows.row_store import RowStore
from tasks.rows.shard import Shard
from tasks.rows.stage_rows import StageRows
from tasks.rows.table_store import Samples
from tasks.runtime.threads import map_threads

LOOKUPS_AT_ONCE = 8
"""Shards that are looked up at the same time: most of the time passes waiting for a remote store."""

SHARDS_IN_MEMORY = 1024
"""Shards whose digests and places are in memory before they are moved to a file, which stays open: a process may open
about a thousand."""

_T = TypeVar("_T")
_Result = TypeVar("_Result")

Given: TypeAlias = Callable[[RowStore, Stage, pa.Array], Places]
"""Returns the places of results that are taken as they are, by stage and row id; the others are missing."""


def look_up(plan: EnginePlan, store: RowStore, samples: Sequence[Samples], given: Given | None = None) -> list[Shard]:
    """Return the shards of the source with the places of the results that are stored.

    The result of a stage can be looked up once the results of the stages that it reads are known, so one stage is
    looked up after the other. Only the index of one is in memory at a time.

    Args:
        given: Results that are taken as they are, whatever the row store has.

    Raises:
        AssayError: The samples cannot be read.
    """
    digests = [*_move(_map_shards(_digest, samples), store.arrays.move)]
    positions = np.arange(max(map(len, digests), default=0))
    shards = [
        Shard(number, (each,), ((number, positions[: len(own)]),), own, {})
        for number, (each, own) in enumerate(zip(samples, digests, strict=True))
    ]
    row_ids = [None] * len(shards) if given is None else map_threads(_read_ids, samples, LOOKUPS_AT_ONCE)
    parts = list(zip(shards, row_ids, strict=True))
    for stage, step in plan.steps.items():
        found = _map_shards(partial(_find, step, store, given), parts)
        for shard, places in zip(shards, _move(found, partial(Places.move, arrays=store.arrays)), strict=True):
            shard.places[stage] = places
        store.arrays.rest()
    return shards


def _map_shards(function: Callable[[_T], _Result], parts: Sequence[_T]) -> Iterator[_Result]:
    """Yield the result of a function for each part, computed for several at the same time."""
    for start in range(0, len(parts), SHARDS_IN_MEMORY):
        yield from map_threads(function, parts[start : start + SHARDS_IN_MEMORY], LOOKUPS_AT_ONCE)


def _move(parts: Iterable[_T], move: Callable[[Sequence[_T]], list[_T]]) -> Iterator[_T]:
    """Yield the parts as a function returns them, with few in memory at a time."""
    waiting = iter(parts)
    while some := [*islice(waiting, SHARDS_IN_MEMORY)]:
        yield from move(some)


def _digest(samples: Samples) -> Digests:
    table = samples.read()
    return digest_rows(table, np.arange(table.num_rows + 1), Stage.SAMPLES)


def _read_ids(samples: Samples) -> pa.Array:
    return samples.read(["row_id"])["row_id"].combine_chunks()


def _find(step: StageStep, store: RowStore, given: Given | None, part: tuple[Shard, pa.Array | None]) -> Places:
    """Return the places of the results of a stage for a shard, with those of the earlier stages.

    Args:
        part: The shard, and the ids of its rows if results are given.
    """
    shard, row_ids = part
    places = Places.nothing(len(shard)) if given is None else given(store, step.stage, row_ids)
    if step.recipe is None or step.refresh:
        return places
    is_known = [~shard.places[each].missing for each in step.reads if each is not Stage.SAMPLES]
    positions = np.flatnonzero(np.logical_and.reduce([places.missing, *is_known]))
    keys = row_keys(step.recipe, [shard.digests_of(each)[positions] for each in step.reads])
    return places.fill(positions, store.find(step.stage, step.recipe, keys))


def read_known(
    plan: EnginePlan, store: RowStore, shards: Sequence[Shard], *, whole: bool = False
) -> Iterator[dict[Stage, StageRows]]:
    """Yield the results that the missing stages of each shard read, if all of a stage are stored.

    Args:
        shards: Packed shards, in the order in which they are computed.
        whole: True to read columns that none of the missing stages reads, too.

    Raises:
        AssayError: A segment cannot be read.
    """
    missing = {stage for shard in shards for stage in shard.missing}
    read = [
        {stage for each in shard.missing for stage in plan.steps[each].reads} - {*shard.missing, Stage.SAMPLES}
        for shard in shards
    ]
    rows = {
        stage: store.read_shards(
            stage,
            [shard.places[stage] for shard, own in zip(shards, read, strict=True) if stage in own],
            None if whole else _columns(stage, [plan.steps[each] for each in missing]),
        )
        for stage in set[Stage]().union(*read)
    }
    for own in read:
        yield {stage: next(rows[stage]) for stage in own}


def _columns(stage: Stage, readers: Sequence[StageStep]) -> list[str] | None:
    """Return the columns of a stage's table that later stages read; None for all."""
    wanted: set[str] = set()
    for step in readers:
        if stage in step.reads:
            if stage not in step.definition.columns:
                return None
            wanted.update(step.definition.columns[stage])
    return sorted(wanted)


def pack_shards(shards: Sequence[Shard], rows: int, arrays: MappedArrays) -> Iterator[Shard]:
    """Yield the rows that lack a result, packed into shards of their own.

    Args:
        shards: Shards of the source, in the order of their numbers.
        rows: Maximum number of rows per packed shard.
        arrays: Files of their arrays.
    """
    yield from _move(_pack(shards, rows), partial(Shard.move, arrays=arrays))


def _pack(shards: Sequence[Shard], rows: int) -> Iterator[Shard]:
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
