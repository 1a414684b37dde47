"""Compute the stages of a run for the rows whose results the row store does not have, a few shards at a time."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import TypeAlias

from flows.execution.calibration_lookup import mapped_settings
from flows.execution.run import Run
from flows.execution.runners import await_shard, count_processes, max_concurrent_shards
from flows.execution.spending import count_elsewhere
from flows.planning.run_plan import RunPlan
from metric_core.stages import Stage
from tasks.engine.compaction import compact, gather_known
from tasks.engine.lookup import SHARDS_IN_MEMORY, Given, look_up, pack_shards, read_known
from tasks.engine.schedule import open_schedule
from tasks.engine.stage_step import EnginePlan, StageStep, make_recipe
from tasks.engine.stage_task import SHARD_TASK, start_shard
from tasks.engine.worker_terms import WorkerTerms
from tasks.reports.run.report_page import load_templates
from tasks.rows.computed_tables import RunTables
from tasks.rows.row_store import RowStore
from tasks.rows.shard import Shard
from tasks.rows.table_store import Samples
from tasks.runtime import progress
from tasks.runtime.start_up import working_meanwhile

_Start: TypeAlias = Callable[[Shard], Callable[[], Shard]]
"""Starts the computation of a shard, and returns a function that waits for its results and returns the shard."""

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


def compute_rows(run: Run, samples: Sequence[Samples], given: Given | None = None) -> RunTables:
    """Compute the stages of a run, and return its tables.

    Results are looked up before anything is submitted; a run whose results are all known submits nothing.

    Args:
        given: Results that are taken as they are, whatever the row store has.

    Raises:
        AssayError: A stage cannot be computed; the message says why.
    """
    plan = engine_plan(run)
    store = RowStore(plan.tables)
    shards = look_up(plan, store, samples, given)
    usages = {stage: store.usage_of(shard.places[stage] for shard in shards) for stage in plan.steps}
    if any(shard.missing for shard in shards):
        packed = [*pack_shards(shards, plan.shard_rows, store.arrays)]
        with working_meanwhile(*_FOR_THE_REPORT), _open_engine(run, plan, store, packed) as start:
            for shard in _compute(packed, start, max_concurrent_shards(run.plan.storage)):
                shard.give_back(shards)
                if shard.number % SHARDS_IN_MEMORY == 0:
                    store.arrays.rest()
                for stage, usage in shard.usages.items():
                    usages[stage] += usage
    if given is None:
        compact(plan, store, shards)
    store.release()
    places = {stage: [shard.places[stage] for shard in shards] for stage in plan.steps}
    return RunTables(store, samples, places, usages)


def _compute(shards: Iterable[Shard], start: _Start, limit: int) -> Iterator[Shard]:
    """Yield shards with their results, in their order.

    Args:
        limit: Maximum number of shards that have been started and not yielded.
    """
    started: deque[Callable[[], Shard]] = deque()
    for shard in shards:
        if len(started) >= limit:
            yield started.popleft()()
        started.append(start(shard))
    while started:
        yield started.popleft()()


@contextmanager
def _open_engine(run: Run, plan: EnginePlan, store: RowStore, shards: Sequence[Shard]) -> Iterator[_Start]:
    """Yield the function that starts the computation of a shard, in this process or in another one."""
    storage = run.plan.storage
    if storage.runner.engine == "threads":
        known = read_known(plan, store, shards)
        with open_schedule(plan, store, storage.stages_at_once) as schedule:
            yield lambda shard: start_shard(shard, schedule, next(known))
        return
    rows = Counter[Stage]()
    for shard in shards:
        rows.update(dict.fromkeys(shard.missing, len(shard)))
    for stage in plan.steps:
        progress.advance(stage, 0, rows[stage])
    terms = WorkerTerms.of_run(plan, run.models, count_processes(storage))
    gathered = gather_known(plan, store, shards)
    yield lambda _: _start_elsewhere(run.plan, plan, terms, next(gathered))


def _start_elsewhere(run: RunPlan, plan: EnginePlan, terms: WorkerTerms, shard: Shard) -> Callable[[], Shard]:
    """Submit a shard to another process, which cannot report its progress or what it asked: this process does so."""
    future = SHARD_TASK.submit(shard, shard.number, plan, terms)

    def wait() -> Shard:
        computed: Shard = await_shard(future, run.storage.runner)
        for stage, usage in computed.usages.items():
            count_elsewhere(run.models, usage)
            progress.advance(stage, len(computed))
        return computed

    return wait
