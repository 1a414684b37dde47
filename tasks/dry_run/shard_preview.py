"""One shard in a plan: the tables that are kept, and likenesses of those that only the run can make."""

from dataclasses import dataclass, field

import pyarrow as pa

from metric_core.stages import Stage
from tasks.tables.table_store import StageRef, read


@dataclass(slots=True)
class ShardPreview:
    """What is known of one shard: tables by reference where the run would have just these, else a likeness."""

    refs: dict[Stage, StageRef]
    likenesses: dict[Stage, pa.Table] = field(default_factory=dict)

    def refs_of(self, stages: tuple[Stage, ...]) -> list[StageRef] | None:
        """The tables of stages; None if one is not known for certain."""
        return [self.refs[stage] for stage in stages] if all(stage in self.refs for stage in stages) else None

    def tables_of(self, stages: tuple[Stage, ...]) -> dict[Stage, pa.Table]:
        """What a stage can be run on: tables, and likenesses where there is none."""
        return {
            stage: read(self.refs[stage]) if stage in self.refs else self.likenesses[stage]
            for stage in stages
            if stage in self.refs or stage in self.likenesses
        }
