"""Read the rows of a run, and compute all stages for them."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from flows.config.run_config import RunConfig, tables_root
from flows.execution.plan import Plan
from flows.execution.run import Run
from flows.execution.shards import Shard, ShardQueue, Submitted
from flows.execution.stage_settings import samples_settings
from flows.execution.stage_submitter import StageSubmitter
from metric_core.stages import Stage
from tasks.runtime import progress
from tasks.stages.prefect_task import run_here
from tasks.stages.samples import SamplesResult, samples
from tasks.tables.table_store import StageRef

LOOKUPS_AT_ONCE = 16
"""Shards whose kept tables are looked up at the same time: most of the time passes waiting for a remote store."""

A = TypeVar("A")
B = TypeVar("B")


def read_samples(config: RunConfig, plan: Plan) -> SamplesResult:
    """Read the source into shards.

    Args:
        config: Configuration of the run.
        plan: Plan of the run.
    """
    settings, reporter = samples_settings(config, plan), partial(progress.advance, Stage.SAMPLES)
    read: SamplesResult = run_here(samples, settings, tables_root(config), reporter)
    return read


def run_shards(run: Run, read: SamplesResult) -> list[StageRef]:
    """Compute the stages of a run and return their tables, including the samples.

    What earlier runs have computed is found before anything is submitted.

    Args:
        run: The run.
        read: Result of reading its source.
    """
    submitter = StageSubmitter(run)
    stages = run.plan.sharded_stages
    shards = [
        _Shard(number, tables, submitter) for number, tables in enumerate(_map_threads(submitter.find_all, read.refs))
    ]
    rows = {stage: sum(shard.rows for shard in shards if stage not in shard.tables) for stage in stages}
    return ShardQueue(run.config, [stages], rows).run(shards)


class _Shard(Shard):
    """A shard whose stages are all submitted at once: Prefect starts each when its inputs are done."""

    def __init__(self, number: int, tables: Mapping[Stage, StageRef], submitter: StageSubmitter) -> None:
        super().__init__(number, tables)
        self.rows = tables[Stage.SAMPLES].rows
        self._submitter = submitter

    def submit(self, level: Sequence[Stage]) -> Mapping[Stage, Submitted]:
        tables: dict[Stage, Any] = dict(self.tables)
        submitted: dict[Stage, Submitted] = {}
        for stage in level:
            if stage not in tables:
                submitted[stage] = self._submitter.submit(stage, tables, self.number, self.rows)
                tables[stage] = submitted[stage].future
        return submitted


def _map_threads(function: Callable[[A], B], arguments: Sequence[A]) -> list[B]:
    """Return the results of a function that mostly waits for storage, in the order of the arguments."""
    if len(arguments) < 2:
        return list(map(function, arguments))
    with ThreadPoolExecutor(LOOKUPS_AT_ONCE) as threads:
        return list(threads.map(function, arguments))
