"""Describe rows that are computed together, with what is known of their results."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from metric_core.stages import Stage
from tasks.engine.stage_rows import StageRows
from tasks.engine.stage_step import EnginePlan
from tasks.rows.placed_rows import PlacedRows
from tasks.tables.merge import take_rows
from tasks.tables.table_store import StageRef, read


@dataclass(frozen=True, slots=True)
class ShardOfRows:
    """Rows that are computed together.

    Args:
        number: Number of the shard, which names its tasks.
        parts: Tables of samples, each with the positions of its rows that belong to the shard.
        digests: Digest of each row.
        known: Places of the results that are known before, by stage; -1 for the others.
    """

    number: int
    parts: tuple[tuple[StageRef, Any], ...]
    digests: Any
    known: Mapping[Stage, PlacedRows]

    def read_samples(self) -> StageRows:
        """Return the samples.

        Raises:
            AssayError: They cannot be read.
        """
        table = pa.concat_tables([take_rows(read(ref), positions) for ref, positions in self.parts])
        return StageRows.of_samples(table, self.digests)

    def missing(self, plan: EnginePlan) -> list[Stage]:
        """Return the stages that are computed for some of the rows, in their order."""
        return [stage for stage in plan.steps if self.known[stage].missing.any()]
