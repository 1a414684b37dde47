"""Read the rows of a run, and compute all stages for them."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

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

    Args:
        run: The run.
        read: Result of reading its source.
    """
    submitter = StageSubmitter(run)
    stages = run.plan.sharded_stages
    queue = ShardQueue(run.config, [stages], dict.fromkeys(stages, sum(ref.rows for ref in read.refs)))
    return queue.run(_Shard(number, ref, submitter) for number, ref in enumerate(read.refs))


class _Shard(Shard):
    """A shard whose stages are all submitted at once: Prefect starts each when its inputs are done."""

    def __init__(self, number: int, samples: StageRef, submitter: StageSubmitter) -> None:
        super().__init__(number, {Stage.SAMPLES: samples})
        self._submitter = submitter

    def submit(self, level: Sequence[Stage]) -> Mapping[Stage, Submitted]:
        tables: dict[Stage, Any] = dict(self.tables)
        submitted: dict[Stage, Submitted] = {}
        for stage in level:
            submitted[stage] = self._submitter.submit(stage, tables, self.number, self.tables[Stage.SAMPLES].rows)
            tables[stage] = submitted[stage].future
        return submitted
