"""Compute shards of a run whose stages are submitted at once, except those whose tables are kept."""

from collections.abc import Mapping, Sequence
from typing import Any

from flows.execution.shards import Shard, ShardQueue, Submitted
from flows.execution.stage_submitter import StageSubmitter
from flows.planning.run_plan import RunPlan
from metric_core.stages import Stage
from tasks.tables.table_store import StageRef
from tasks.windows.schedule import ShardWindows

LOOKUPS_AT_ONCE = 16
"""Shards whose kept tables are looked up at the same time: most of the time passes waiting for a remote store."""


class ShardRun(Shard):
    """A shard whose stages are all submitted at once: each starts when its first inputs are there.

    Args:
        number: Position of the shard.
        tables: Tables of the shard that exist, including the samples.
        submitter: Submitter of the run.
    """

    def __init__(self, number: int, tables: Mapping[Stage, StageRef], submitter: StageSubmitter) -> None:
        super().__init__(number, tables)
        self.rows = tables[Stage.SAMPLES].rows
        self._submitter = submitter
        self._windows: ShardWindows | int = 0

    def submit(self, level: Sequence[Stage]) -> Mapping[Stage, Submitted]:
        """Submit the stages whose tables are missing."""
        missing = [stage for stage in level if stage not in self.tables]
        if not missing:
            return {}
        tables: dict[Stage, Any] = dict(self.tables)
        submitted: dict[Stage, Submitted] = {}
        self._windows = self._submitter.open_windows(self.tables, missing)
        for stage in missing:
            submitted[stage] = self._submitter.submit(stage, tables, self.number, self.rows, self._windows)
            tables[stage] = submitted[stage].future
        return submitted

    def collect(self, done: Mapping[Stage, StageRef]) -> None:
        """Add the tables of the submitted stages."""
        super().collect(done)
        if done:
            self._submitter.close_windows(self._windows)
            self._windows = 0  # the tables of all shards would not fit into memory


def compute_shards(plan: RunPlan, shards: Sequence[ShardRun], stages: Sequence[Stage]) -> list[StageRef]:
    """Compute the missing tables of shards, and return all tables in the order of the shards.

    Args:
        plan: Plan of the run.
        shards: The shards.
        stages: Stages to compute, in the order of their levels.
    """
    rows = {stage: sum(shard.rows for shard in shards if stage not in shard.tables) for stage in stages}
    return ShardQueue(plan.storage, plan.models, [stages], rows).run(shards)
