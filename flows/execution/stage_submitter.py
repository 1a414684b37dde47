"""Submit the stages of a run to Prefect, each with its settings and the place of its tables."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from flows.execution.calibration_lookup import mapped_settings
from flows.execution.run import Run
from flows.execution.shards import Submitted
from metric_core.stages import Stage
from tasks.stages.registry import STAGES
from tasks.stages.stage_task import STAGE_TASKS, TableStorage
from tasks.tables.kept_tables import KeptTables
from tasks.tables.table_store import StageRef
from tasks.windows.schedule import Schedule, ShardWindows, open_schedule


class StageSubmitter:
    """A submitter of the stages of one run.

    Args:
        run: The run.
        schedule: Schedule of the windows that this process computes; None if other processes compute the stages.
    """

    def __init__(self, run: Run, schedule: Schedule | None) -> None:
        self.plan = run.plan.metrics
        self._rows = run.plan.storage.rows_a_window
        self._schedule = schedule
        self._kept = KeptTables(run.tables)
        self._settings = mapped_settings(run.plan, run.models)
        self._storage = {
            stage: TableStorage(
                run.tables,
                STAGE_TASKS[stage].identity(self._settings[stage], run.models),
                refresh=stage in run.plan.storage.refresh,
            )
            for stage in self.plan.sharded_stages
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

    def keep(self, stage: Stage, tables: Mapping[Stage, StageRef]) -> None:
        """Record the table of a stage for one shard.

        Args:
            stage: The stage.
            tables: Tables of the shard, including that of the stage.
        """
        if (identity := self._storage[stage].identity) is not None:
            inputs = [tables[earlier] for earlier in self.plan.inputs_of(stage)]
            self._kept.keep(STAGE_TASKS[stage].key(inputs, identity), tables[stage])

    def recipes(self) -> dict[Stage, str]:
        """Return what determines the tables of each stage, beside its input tables; without those always computed."""
        recipes = {
            stage: STAGE_TASKS[stage].recipe(self.plan.inputs_of(stage), self._storage[stage])
            for stage in self.plan.sharded_stages
        }
        return {stage: recipe for stage, recipe in recipes.items() if recipe is not None}

    def open_windows(self, tables: Mapping[Stage, StageRef], stages: Collection[Stage]) -> ShardWindows | int:
        """Return the windows of a shard; the number of rows per window if other processes compute its stages.

        Args:
            tables: Tables of the shard that exist.
            stages: Stages that are going to be computed.
        """
        if self._schedule is None:
            return self._rows
        judged = [stage for stage in stages if STAGES[stage].asks]
        return self._schedule.open_shard(tables[Stage.SAMPLES], tables, judged, self._rows)

    def submit(
        self, stage: Stage, tables: Mapping[Stage, Any], shard: int, rows: int, windows: ShardWindows | int
    ) -> Submitted:
        """Submit a stage for one shard.

        Args:
            stage: The stage.
            tables: References, or futures of references, to the tables of the shard.
            shard: Position of the shard.
            rows: Number of samples that the stage is computed for.
            windows: Windows of the shard; see `open_windows`.
        """
        reads, is_here = self.plan.inputs_of(stage), not isinstance(windows, int)
        inputs = {earlier: None if is_here else tables[earlier] for earlier in reads}
        future = STAGE_TASKS[stage].submit(inputs, self._settings[stage], self._storage[stage], shard, windows)
        if not isinstance(windows, int):
            future.add_done_callback(lambda _: windows.leave(stage))
        return Submitted(future, rows)

    def close_windows(self, windows: ShardWindows | int) -> None:
        """Forget the windows of a shard whose stages have ended."""
        if self._schedule is not None and not isinstance(windows, int):
            self._schedule.close_shard(windows)


@contextmanager
def open_submitter(run: Run) -> Iterator[StageSubmitter]:
    """Yield the submitter of a run, for a block in which its stages are computed.

    Args:
        run: The run.
    """
    if run.plan.storage.runner.engine != "threads":
        yield StageSubmitter(run, None)
        return
    with open_schedule(run.plan.storage.stages_at_once) as schedule:
        yield StageSubmitter(run, schedule)
