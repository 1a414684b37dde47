"""Find or compute the results of a stage for the rows of a shard, some rows at a time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from metric_core.stages import Stage
from tasks.engine.stage_step import StageStep
from tasks.rows.places import Places
from tasks.rows.row_digests import DIGEST, Digests, row_keys
from tasks.rows.row_store import RowStore
from tasks.rows.stage_rows import StageRows, interleave
from tasks.runtime.usage import StageUsage
from tasks.stages.definition import StageOutput, Tables

Compute: TypeAlias = Callable[[Tables], StageOutput]
"""Computes the rows of a stage's table from the rows of the tables that it reads."""


@dataclass(eq=False, slots=True)
class Window:
    """Consecutive rows of a shard in a stage, whose results are computed at once unless they are stored.

    Args:
        places: Places of the results that are known before, and of those that are found.
        found: Positions of the rows whose results are found.
        computed: The results that are computed; None if there are none.
        keys: Keys of these results.
        usage: Cost of these results.
    """

    step: StageStep
    places: Places
    found: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    computed: StageRows | None = None
    keys: Digests = field(default_factory=lambda: np.zeros(0, DIGEST))
    usage: StageUsage = field(default_factory=StageUsage)

    def compute(self, store: RowStore, read: Mapping[Stage, StageRows], compute: Compute) -> StageRows:
        """Find or compute what is missing, and return the results of all rows.

        Only rows that have not been looked up are: before, the results that the stage reads were not known.

        Args:
            read: The samples, and the results of the stages that the stage reads.
            compute: Computes the results that are not found.
        """
        step, stage = self.step, self.step.stage
        keys = row_keys(step.recipe or "", [read[earlier].digests for earlier in step.reads])
        unknown = np.flatnonzero(self.places.unknown)
        if len(unknown) and step.recipe is not None and not step.refresh:
            self.places = self.places.fill(unknown, store.find(stage, step.recipe, keys[unknown]))
            self.found = unknown[~self.places.missing[unknown]]
        stored = store.read_rows(stage, self.places.select(~self.places.missing))
        positions = np.flatnonzero(self.places.missing)
        if not len(positions):
            return stored
        output = compute({earlier: read[earlier].select(positions).table for earlier in step.reads})
        row_ids = read[Stage.SAMPLES].table["row_id"].combine_chunks().take(pa.array(positions))
        self.computed = StageRows.from_table(stage, output.table, row_ids)
        self.keys, self.usage = keys[positions], output.usage
        return self.computed if not len(stored) else interleave(self.computed, positions, stored)


def store_windows(store: RowStore, windows: Sequence[Window]) -> tuple[Places, StageUsage]:
    """Store the results that were computed in the windows of a stage, and return the places of all and their cost.

    Args:
        windows: All windows of the stage in a shard, in their order. Those that are known before cost nothing.
    """
    step = windows[0].step
    places = Places.concat([window.places for window in windows])
    found = Places.concat([window.places.select(window.found) for window in windows])
    usage = sum((window.usage for window in windows), store.usage_of([found]))
    computed = [window.computed for window in windows if window.computed is not None]
    if computed:
        keys = np.concatenate([window.keys for window in windows])
        stored = store.append(step.stage, step.recipe, StageRows.concat(computed), keys, usage)
        places = places.fill(places.missing, stored)
    return places, usage
