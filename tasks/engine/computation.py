"""Find or compute the results of a stage for the rows of a shard, some rows at a time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from metric_core.stages import Stage
from tasks.engine.stage_rows import StageRows, bounds_from, interleave
from tasks.engine.stage_step import StageStep
from tasks.rows.placed_rows import PlacedRows
from tasks.rows.row_digests import Digests, row_keys
from tasks.rows.row_store import RowStore
from tasks.runtime.usage import StageUsage
from tasks.stages.definition import StageOutput, Tables

Compute: TypeAlias = Callable[[Tables], StageOutput]
"""Computes the rows of a stage's table from the rows of the tables that it reads."""


@dataclass(frozen=True, slots=True)
class StageResult:
    """The results of a stage for the rows of a shard.

    Args:
        usage: Cost of the results that were computed, or found and not known before.
        computed: Number of rows that were computed.
    """

    placed: PlacedRows
    usage: StageUsage
    computed: int


@dataclass(frozen=True, slots=True)
class _Block:
    """The results for consecutive rows: places of those known and found, and what was computed for the others."""

    placed: PlacedRows
    found: NDArray[np.int64]
    positions: NDArray[np.int64]
    keys: Digests
    fresh: StageRows | None
    usage: StageUsage


class StageComputation:
    """The results of a stage for the rows of a shard. May be used from several threads, each with other rows.

    Args:
        store: Row store, which says which rows are computed: those that it does not have.
        known: Places of the results that are known before; -1 for the others.
    """

    def __init__(self, step: StageStep, store: RowStore, known: PlacedRows, row_ids: pa.Array) -> None:
        self._step = step
        self._store = store
        self._known = known
        self._row_ids = row_ids
        self._blocks: dict[int, _Block] = {}
        self._lock = Lock()

    def rows(self, start: int, inputs: Mapping[Stage, StageRows], compute: Compute) -> StageRows:
        """Return the results for consecutive rows.

        Args:
            start: Position of the first of the rows.
            inputs: Results of the stages that the stage reads, for these rows.
            compute: Computes the results that are not found.
        """
        stage, step = self._step.stage, self._step
        count = len(next(iter(inputs.values())))
        placed = self._known.select(np.arange(start, start + count))
        keys = row_keys(step.recipe or "", [inputs[earlier].digests for earlier in step.reads])
        unknown = positions = np.flatnonzero(placed.missing)
        if len(positions) and step.recipe is not None and not step.refresh:
            placed = placed.fill(positions, self._store.find(stage, step.recipe, keys[positions]))
            positions = np.flatnonzero(placed.missing)
        late = np.setdiff1d(unknown, positions)
        found = read_rows(self._store, stage, placed.select(np.flatnonzero(~placed.missing)))
        if not len(positions):
            self._add(start, _Block(placed, late, positions, keys[positions], None, StageUsage()))
            return found
        output = compute({earlier: rows.select(positions).table for earlier, rows in inputs.items()})
        fresh = StageRows.from_table(stage, output.table, self._row_ids.take(pa.array(start + positions)))
        self._add(start, _Block(placed, late, positions, keys[positions], fresh, output.usage))
        return fresh if len(positions) == count else interleave(fresh, positions, found)

    @property
    def found(self) -> int:
        """The number of rows so far whose results were found, and not known before."""
        return sum(len(block.found) for block in self._blocks.values())

    @property
    def computed(self) -> int:
        """The number of rows so far whose results were computed."""
        return sum(len(block.positions) for block in self._blocks.values())

    def store(self) -> StageResult:
        """Store the results that were computed, and return the places of all."""
        blocks = [self._blocks[start] for start in sorted(self._blocks)]
        placed = PlacedRows.concat([block.placed for block in blocks])
        computed = [block for block in blocks if block.fresh is not None]
        late = PlacedRows.concat([block.placed.select(block.found) for block in blocks])
        usage = sum((block.usage for block in computed), self._store.usage_of(self._step.stage, late))
        if not computed:
            return StageResult(placed, usage, 0)
        fresh = StageRows.concat([block.fresh for block in computed if block.fresh is not None])
        keys = np.concatenate([block.keys for block in computed])
        complete = ~fresh.find_failed(self._step.stage)
        where = self._store.append(
            self._step.stage, self._step.recipe, fresh.table, fresh.bounds, keys, fresh.digests, complete, usage
        )
        return StageResult(placed.fill(np.flatnonzero(placed.missing), where), usage, len(fresh))

    def _add(self, start: int, block: _Block) -> None:
        with self._lock:
            self._blocks[start] = block


def read_rows(store: RowStore, stage: Stage, placed: PlacedRows) -> StageRows:
    """Return the results at some places.

    Args:
        placed: Places, all of them present.
    """
    return StageRows(store.read(stage, placed), bounds_from(placed.count), placed.digests)
