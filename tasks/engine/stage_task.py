"""Run the stages of a shard as Prefect tasks: in this process, or with the whole shard in another one.

Results pass between the stages of a shard window by window, in memory; what a task returns says where they are stored.
"""

from collections.abc import Mapping
from functools import lru_cache, partial

from prefect import Task
from prefect.context import TaskRunContext
from prefect.futures import PrefectFuture

from metric_core.stages import Stage
from tasks.engine.computation import StageResult
from tasks.engine.concurrency_limits import hold_slot
from tasks.engine.registry import STAGES
from tasks.engine.schedule import Schedule, ShardWindows, open_schedule
from tasks.engine.shard_of_rows import ShardOfRows
from tasks.engine.stage_step import EnginePlan, StageStep
from tasks.opening.run_models import RunModels, models_for
from tasks.prefect_support.prefect_task import make_prefect_task
from tasks.rows.row_store import RowStore
from tasks.runtime import progress
from tasks.stages.definition import StageOutput, Tables

WINDOWS_ELSEWHERE = 4
"""Windows that another process computes at the same time: enough to keep a judge busy."""

ShardResult = Mapping[Stage, StageResult]
"""The results of a shard, by stage."""


class RunningShard:
    """A shard whose stages have been submitted to Prefect in this process.

    Raises:
        AssayError: The samples cannot be read.
    """

    def __init__(self, shard: ShardOfRows, plan: EnginePlan, store: RowStore, schedule: Schedule) -> None:
        self.shard = shard
        self._schedule = schedule
        missing = shard.missing(plan)
        judged = [stage for stage in missing if plan.steps[stage].is_judged]
        self._windows = schedule.open_shard(shard.read_samples(), shard.known, store, judged, plan.window_rows)
        self._futures = {stage: self._submit(plan.steps[stage]) for stage in missing}

    def result(self) -> ShardResult:
        """Wait for the stages that are computed, and return their results.

        Raises:
            BaseException: Whatever a stage raises.
        """
        results = {stage: future.result() for stage, future in self._futures.items()}
        self._schedule.close_shard(self._windows)
        return results

    def _submit(self, step: StageStep) -> "PrefectFuture[StageResult]":
        future = STAGE_TASKS[step.stage].submit(step, self.shard.number, self._windows)
        future.add_done_callback(lambda _: self._windows.leave(step.stage))
        return future


def _compute_stage(step: StageStep, shard: int, windows: ShardWindows) -> StageResult:
    """Compute a stage for the rows of a shard."""
    del shard  # only names the task run
    models = _models_of_run(windows.tables).select(step.settings)

    def compute(tables: Tables) -> StageOutput:
        with hold_slot(step.settings, step.definition.asked_kinds(step.settings), models.judge):
            return step.definition.compute(tables, step.settings, models, partial(progress.advance, step.stage))

    return windows.compute(step, compute)


def _models_of_run(tables: str) -> RunModels:
    run_id = _id_of_run()
    return models_for(run_id, tables) if run_id else RunModels(tables)


def _id_of_run() -> str:
    context = TaskRunContext.get()
    return "" if context is None else str(context.task_run.flow_run_id)


def _compute_shard(shard: ShardOfRows, number: int, plan: EnginePlan) -> ShardResult:
    """Compute a shard in a separate process."""
    del number  # only names the task run
    with open_schedule(WINDOWS_ELSEWHERE) as schedule:
        return RunningShard(shard, plan, _store_of_run(plan.tables, _id_of_run()), schedule).result()


@lru_cache(maxsize=2)
def _store_of_run(tables: str, run_id: str) -> RowStore:
    """Return the row store of a run in this process, which looks at what other runs stored once."""
    del run_id
    return RowStore(tables)


STAGE_TASKS: dict[Stage, "Task[..., StageResult]"] = {
    stage: make_prefect_task(stage, definition.version, _compute_stage, f"{stage}-{{shard}}")
    for stage, definition in STAGES.items()
}
"""The stages, as Prefect tasks."""

SHARD_TASK: "Task[..., ShardResult]" = make_prefect_task("shard", 1, _compute_shard, "shard-{number}")
"""A shard whose stages run in one other process, as a Prefect task."""
