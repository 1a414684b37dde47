"""Submit the stages of a run to Prefect, each with its settings and the place of its tables."""

from collections.abc import Mapping
from typing import Any

from flows.execution.calibration_lookup import with_maps
from flows.execution.run import Run
from flows.execution.shards import Submitted
from flows.execution.stage_settings import stage_settings, storage_of
from metric_core.stages import Stage
from tasks.stages.stage_task import STAGE_TASKS
from tasks.tables.kept_tables import KeptTables
from tasks.tables.table_store import StageRef


class StageSubmitter:
    """A submitter of the stages of one run.

    Args:
        run: The run.
    """

    def __init__(self, run: Run) -> None:
        self.plan = run.plan
        self._kept = KeptTables(run.tables)
        self._settings = with_maps(stage_settings(run.config, run.plan), run.config, run.plan, run.models)
        self._storage = {
            stage: storage_of(stage, self._settings[stage], run.config, run.models) for stage in run.plan.sharded_stages
        }

    def find(self, stage: Stage, tables: Mapping[Stage, StageRef]) -> StageRef | None:
        """Return the table of a stage for one shard, if it is kept.

        Args:
            stage: The stage.
            tables: Tables of the shard.
        """
        inputs = self.plan.inputs_of(stage)
        if any(earlier not in tables for earlier in inputs):
            return None
        return STAGE_TASKS[stage].find([tables[earlier] for earlier in inputs], self._storage[stage], self._kept)

    def find_all(self, samples: StageRef) -> dict[Stage, StageRef]:
        """Return the tables of a shard that are kept, including its samples.

        Args:
            samples: Samples of the shard.
        """
        tables = {Stage.SAMPLES: samples}
        for stage in self.plan.sharded_stages:
            if (ref := self.find(stage, tables)) is not None:
                tables[stage] = ref
        return tables

    def submit(self, stage: Stage, tables: Mapping[Stage, Any], shard: int, rows: int) -> Submitted:
        """Submit a stage for one shard.

        Args:
            stage: The stage.
            tables: References, or futures of references, to the tables of the shard.
            shard: Position of the shard.
            rows: Number of samples that the stage is computed for.
        """
        inputs = [tables[earlier] for earlier in self.plan.inputs_of(stage)]
        return Submitted(STAGE_TASKS[stage].submit(inputs, self._settings[stage], self._storage[stage], shard), rows)
