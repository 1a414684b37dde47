"""Run the stages of a shard as Prefect tasks: in this process, or with the whole shard in another one.

Results pass between the stages of a shard window by window, in memory; the shard says where they are stored.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial

from prefect import Task
from prefect.context import TaskRunContext
from prefect.futures import PrefectFuture

from metric_core.stages import Stage
from tasks.engine.concurrency_limits import hold_slot
from tasks.engine.lookup import read_known
from tasks.engine.registry import STAGES
from tasks.engine.schedule import Schedule, StageWindows, open_schedule
from tasks.engine.stage_step import EnginePlan
from tasks.engine.worker_terms import WorkerTerms
from tasks.opening.run_models import RunModels, models_for
from tasks.prefect_support.prefect_task import make_prefect_task
from tasks.rows.row_store import RowStore
from tasks.rows.shard import Shard
from tasks.rows.stage_rows import StageRows
from tasks.runtime import progress
from tasks.stages.definition import StageOutput, Tables

WINDOWS_ELSEWHERE = 4
"""Windows that another process computes at the same time: enough to keep a judge busy."""


def start_shard(shard: Shard, schedule: Schedule, known: Mapping[Stage, StageRows]) -> Callable[[], Shard]:
    """Submit the stages of a shard to Prefect in this process.

    Args:
        known: The results that these stages read and that are all stored.

    Returns:
        A function that waits for the stages and returns the shard with their results, or raises whatever one raises.

    Raises:
        AssayError: The samples cannot be read.
    """
    opened = schedule.open_shard(shard, known)
    futures = [_submit(windows) for windows in opened]

    def wait() -> Shard:
        for future in futures:
            future.result()
        schedule.close_shard(opened)
        return shard

    return wait


def _submit(windows: StageWindows) -> "PrefectFuture[None]":
    future = STAGE_TASKS[windows.step.stage].submit(windows, windows.shard.number)
    future.add_done_callback(lambda _: windows.leave())
    return future


def _compute_stage(windows: StageWindows, shard: int) -> None:
    """Compute a stage for the rows of a shard."""
    del shard  # only names the task run
    step = windows.step
    models = _models_of_run(windows.schedule.store.url).select(step.settings)

    def compute(tables: Tables) -> StageOutput:
        with hold_slot(step.settings, step.definition.asked_kinds(step.settings), models.judge):
            return step.definition.compute(tables, step.settings, models, partial(progress.advance, step.stage))

    windows.compute(compute)


def _models_of_run(tables: str) -> RunModels:
    run_id = _id_of_run()
    return models_for(run_id, tables) if run_id else RunModels(tables)


def _id_of_run() -> str:
    context = TaskRunContext.get()
    return "" if context is None else str(context.task_run.flow_run_id)


def _compute_shard(shard: Shard, number: int, plan: EnginePlan, terms: WorkerTerms) -> Shard:
    """Compute a shard in a separate process."""
    del number  # only names the task run
    terms.accept(plan, _models_of_run(plan.tables))
    store = _store_of_run(plan.tables, _id_of_run())
    (known,) = read_known(plan, store, [shard])
    with open_schedule(plan, store, WINDOWS_ELSEWHERE) as schedule:
        return start_shard(shard, schedule, known)()


@lru_cache(maxsize=2)
def _store_of_run(tables: str, run_id: str) -> RowStore:
    """Return the row store of a run in this process, which looks at what other runs stored once."""
    del run_id
    return RowStore(tables)


STAGE_TASKS: dict[Stage, "Task[..., None]"] = {
    stage: make_prefect_task(stage, definition.version, _compute_stage, f"{stage}-{{shard}}")
    for stage, definition in STAGES.items()
}
"""The stages, as Prefect tasks."""

SHARD_TASK: "Task[..., Shard]" = make_prefect_task("shard", 1, _compute_shard, "shard-{number}")
"""A shard whose stages run in one other process, as a Prefect task."""
