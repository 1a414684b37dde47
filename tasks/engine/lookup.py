"""Look up the results of rows before anything is computed, and pack the rows that lack some into shards."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from metric_core.stages import Stage
from tasks.engine.shard_of_rows import ShardOfRows
from tasks.engine.stage_step import EnginePlan
from tasks.rows.placed_rows import PlacedRows
from tasks.rows.row_digests import Digests, digest_rows, row_keys
from tasks.rows.row_store import RowStore
from tasks.tables.table_store import StageRef, read


class GivenRows(Protocol):
    """Results that a run takes as they are, whatever the row store has."""

    store: RowStore

    def place(self, stage: Stage, row_ids: pa.Array) -> PlacedRows:
        """Return the places of the results of rows in a stage; -1 for those that are not given."""


@dataclass(slots=True)
class LookedUpShard:
    """The rows of a shard of the source, and what is known of their results.

    Args:
        digests: Digest of each row.
        placed: Places of the results, by stage; -1 for those that must be computed.
    """

    samples: StageRef
    digests: Digests
    placed: dict[Stage, PlacedRows] = field(default_factory=dict)

    def find_incomplete(self) -> NDArray[np.int64]:
        """Return the positions of the rows that lack the result of a stage."""
        is_missing = np.zeros(len(self.digests), bool)
        for placed in self.placed.values():
            is_missing |= placed.missing
        return np.flatnonzero(is_missing)


def look_up(plan: EnginePlan, store: RowStore, samples: StageRef, given: GivenRows | None = None) -> LookedUpShard:
    """Return what is known of the rows of a shard.

    The result of a stage can be looked up once the results of the stages that it reads are known.

    Args:
        given: Results that are taken as they are.

    Raises:
        AssayError: The samples cannot be read.
    """
    table = read(samples)
    rows, row_ids = table.num_rows, table["row_id"].combine_chunks()
    shard = LookedUpShard(samples, digest_rows(table, np.arange(rows + 1), Stage.SAMPLES))
    digests, known = {Stage.SAMPLES: shard.digests}, {Stage.SAMPLES: np.ones(rows, bool)}
    for stage, step in plan.steps.items():
        placed = PlacedRows.nothing(rows) if given is None else given.place(stage, row_ids)
        if step.recipe is not None and not step.refresh:
            positions = np.flatnonzero(np.logical_and.reduce([placed.missing, *(known[each] for each in step.reads)]))
            keys = row_keys(step.recipe, [digests[each][positions] for each in step.reads])
            placed = placed.fill(positions, store.find(stage, step.recipe, keys))
        shard.placed[stage] = placed
        digests[stage], known[stage] = placed.digests, ~placed.missing
    return shard


def pack_shards(shards: Sequence[LookedUpShard], rows: int) -> "Iterator[PackedShard]":
    """Yield the rows that lack a result, packed into shards of their own.

    Args:
        rows: Maximum number of rows per packed shard.
    """
    parts: list[tuple[int, NDArray[np.int64]]] = []
    room, number = rows, 0
    for place, shard in enumerate(shards):
        positions = shard.find_incomplete()
        while len(positions):
            parts.append((place, positions[:room]))
            room -= len(parts[-1][1])
            positions = positions[len(parts[-1][1]) :]
            if not room:
                yield PackedShard(number, tuple(parts))
                parts, room, number = [], rows, number + 1
    if parts:
        yield PackedShard(number, tuple(parts))


@dataclass(frozen=True, slots=True)
class PackedShard:
    """Rows of one or several shards of the source that are computed together.

    Args:
        parts: Shards of the source by number, each with the positions of its rows.
    """

    number: int
    parts: tuple[tuple[int, NDArray[np.int64]], ...]

    def __len__(self) -> int:
        """Return the number of rows."""
        return sum(len(positions) for _, positions in self.parts)

    def lacks(self, stage: Stage, shards: Sequence[LookedUpShard]) -> bool:
        """Return whether one of the rows lacks the result of a stage."""
        return any(shards[place].placed[stage].missing[positions].any() for place, positions in self.parts)

    def open(self, shards: Sequence[LookedUpShard]) -> ShardOfRows:
        """Return the rows with what is known of them."""
        chosen = [(shards[place], positions) for place, positions in self.parts]
        stages = chosen[0][0].placed
        return ShardOfRows(
            self.number,
            tuple((shard.samples, positions) for shard, positions in chosen),
            np.concatenate([shard.digests[positions] for shard, positions in chosen]),
            {
                stage: PlacedRows.concat([shard.placed[stage].select(positions) for shard, positions in chosen])
                for stage in stages
            },
        )

    def fill(self, shards: Sequence[LookedUpShard], stage: Stage, placed: PlacedRows) -> None:
        """Note the places of the results of a stage for the rows.

        Args:
            placed: Places of the results, row by row.
        """
        start = 0
        for place, positions in self.parts:
            part = placed.select(np.arange(start, start + len(positions)))
            shards[place].placed[stage] = shards[place].placed[stage].fill(positions, part)
            start += len(positions)
