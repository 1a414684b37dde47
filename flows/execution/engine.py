"""Compute the stages of a run for the rows whose results the row store does not have, a few shards at a time."""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib import import_module
from typing import cast

from prefect.futures import PrefectFuture

from flows.execution.calibration_lookup import mapped_settings
from flows.execution.run import Run
from flows.execution.runners import await_shard, max_concurrent_shards
from flows.execution.spending import count_elsewhere
from flows.planning.run_plan import RunPlan
from metric_core.stages import Stage
from tasks.engine.compaction import compact
from tasks.engine.lookup import GivenRows, LookedUpShard, PackedShard, look_up, pack_shards
from tasks.engine.schedule import Schedule, open_schedule
from tasks.engine.stage_step import EnginePlan, StageStep, make_recipe
from tasks.engine.stage_task import SHARD_TASK, RunningShard, ShardResult
from tasks.reports.run.report_page import load_templates
from tasks.rows.computed_tables import RunTables
from tasks.rows.placed_rows import PlacedRows
from tasks.rows.row_store import RowStore
from tasks.runtime import progress
from tasks.runtime.start_up import working_meanwhile
from tasks.runtime.threads import map_threads
from tasks.tables.table_store import StageRef

LOOKUPS_AT_ONCE = 8
"""Shards that are looked up at the same time: most of the time passes waiting for a remote store."""

_FOR_THE_REPORT = (partial(import_module, "pyarrow.dataset"), partial(import_module, "scipy.special"), load_templates)
"""Work for the report of a run with new answers: more than half a second of CPU time."""


def engine_plan(run: Run) -> EnginePlan:
    """Return the stages of a run as the engine computes them.

    Raises:
        AssayError: A model of a stage cannot be opened.
    """
    plan, models = run.plan, run.models
    settings, storage = mapped_settings(plan, models), plan.storage
    steps = {
        stage: StageStep(
            stage, settings[stage], reads, make_recipe(stage, settings[stage], models, reads), stage in storage.refresh
        )
        for stage, reads in plan.reads.items()
    }
    return EnginePlan(steps, storage.tables_root, storage.rows_a_window, storage.rows_a_shard)


def compute_rows(run: Run, samples: Sequence[StageRef], given: GivenRows | None = None) -> RunTables:
    """Compute the stages of a run, and return its tables.

    Results are looked up before anything is submitted; a run whose results are all known submits nothing.

    Args:
        given: Results that are taken as they are, whatever the row store has.

    Raises:
        AssayError: A stage cannot be computed; the message says why.
    """
    plan = engine_plan(run)
    store = RowStore(plan.tables) if given is None else given.store
    shards = map_threads(lambda ref: look_up(plan, store, ref, given), samples, LOOKUPS_AT_ONCE)
    usages = {stage: store.usage_of(stage, _found(shards, stage)) for stage in plan.steps}
    packed = list(pack_shards(shards, plan.shard_rows))
    with (
        working_meanwhile(*_FOR_THE_REPORT) if packed else nullcontext(),
        _open_queue(run.plan, plan, store) as queue,
    ):
        for shard, results in queue.run(packed, shards):
            for stage, result in results.items():
                shard.fill(shards, stage, result.placed)
                usages[stage] += result.usage
    if given is None:
        compact(plan, store, shards)
    store.release()
    placed = {stage: [shard.placed[stage] for shard in shards] for stage in plan.steps}
    return RunTables(store, samples, placed, usages)


def _found(shards: Sequence[LookedUpShard], stage: Stage) -> PlacedRows:
    return PlacedRows.concat([placed.select(~placed.missing) for placed in (shard.placed[stage] for shard in shards)])


class _ShardQueue:
    """A queue of shards that are being computed: results are awaited for the one at the head.

    Stages that run in another process cannot report their progress or what they asked; the queue does so, shard by
    shard.

    Args:
        run: Plan of the run, which limits the shards in the queue.
        plan: Stages of the run.
        schedule: Schedule of the windows of this process; None if others compute the shards.
    """

    def __init__(self, run: RunPlan, plan: EnginePlan, store: RowStore, schedule: Schedule | None) -> None:
        self._run = run
        self._plan = plan
        self._store = store
        self._schedule = schedule

    def run(
        self, packed: Sequence[PackedShard], shards: Sequence[LookedUpShard]
    ) -> Iterator[tuple[PackedShard, ShardResult]]:
        """Compute shards and yield the results of each, in their order."""
        limit = max_concurrent_shards(self._run.storage)
        queue: deque[tuple[PackedShard, RunningShard | PrefectFuture[ShardResult]]] = deque()
        if self._schedule is None:
            for stage in self._plan.steps:
                progress.advance(stage, 0, sum(len(shard) for shard in packed if shard.lacks(stage, shards)))
        for shard in packed:
            if len(queue) >= limit:
                yield self._next(queue)
            queue.append((shard, self._start(shard, shards)))
        while queue:
            yield self._next(queue)

    def _start(
        self, shard: PackedShard, shards: Sequence[LookedUpShard]
    ) -> "RunningShard | PrefectFuture[ShardResult]":
        rows = shard.open(shards)
        if self._schedule is None:
            return SHARD_TASK.submit(rows, shard.number, self._plan)
        return RunningShard(rows, self._plan, self._store, self._schedule)

    def _next(
        self, queue: "deque[tuple[PackedShard, RunningShard | PrefectFuture[ShardResult]]]"
    ) -> tuple[PackedShard, ShardResult]:
        shard, running = queue.popleft()
        if self._schedule is not None:
            return shard, running.result()
        results = await_shard(cast("PrefectFuture[ShardResult]", running), self._run.storage.runner)
        for stage, result in results.items():
            count_elsewhere(self._run.models, result.usage)
            progress.advance(stage, len(shard))
        return shard, results


@contextmanager
def _open_queue(run: RunPlan, plan: EnginePlan, store: RowStore) -> Iterator[_ShardQueue]:
    if run.storage.runner.engine != "threads":
        yield _ShardQueue(run, plan, store, None)
        return
    with open_schedule(run.storage.stages_at_once) as schedule:
        yield _ShardQueue(run, plan, store, schedule)
