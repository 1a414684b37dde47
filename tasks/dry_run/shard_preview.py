"""Hold one shard of a dry run: the tables that are cached, and previews of those that only the run can compute."""

from dataclasses import dataclass, field

import pyarrow as pa

from metric_core.stages import Stage
from tasks.tables.table_store import StageRef, read


@dataclass(slots=True)
class ShardPreview:
    """One shard of a dry run.

    Args:
        refs: Tables that the run would have unchanged.
        previews: Tables with stand-ins for missing answers.
    """

    refs: dict[Stage, StageRef]
    previews: dict[Stage, pa.Table] = field(default_factory=dict)

    def refs_of(self, stages: tuple[Stage, ...]) -> list[StageRef] | None:
        """Return the tables of stages; None if one of them is unknown."""
        return [self.refs[stage] for stage in stages] if all(stage in self.refs for stage in stages) else None

    def tables_of(self, stages: tuple[Stage, ...]) -> dict[Stage, pa.Table]:
        """Return the tables of stages, with previews in place of unknown tables."""
        return {
            stage: read(self.refs[stage]) if stage in self.refs else self.previews[stage]
            for stage in stages
            if stage in self.refs or stage in self.previews
        }
