"""Read the rows of a run, and compute all stages for them."""

from contextlib import nullcontext
from functools import partial
from importlib import import_module

from flows.execution.run import Run
from flows.execution.shard_run import LOOKUPS_AT_ONCE, ShardRun, compute_shards
from flows.execution.source_settings import samples_settings
from flows.execution.stage_submitter import open_submitter
from flows.execution.unchanged_rows import index_rows, take_unchanged_rows
from flows.planning.run_plan import RunPlan
from metric_core.stages import Stage
from tasks.reports.run.report_page import load_templates
from tasks.runtime import progress
from tasks.runtime.start_up import working_meanwhile
from tasks.runtime.threads import map_threads
from tasks.stages.prefect_task import run_here
from tasks.stages.samples import SamplesResult, samples
from tasks.tables.row_index import RowIndexes
from tasks.tables.table_store import StageRef

_FOR_THE_REPORT = (partial(import_module, "pyarrow.dataset"), partial(import_module, "scipy.special"), load_templates)
"""Work for the report of a run with new answers: more than half a second of CPU time."""


def read_samples(plan: RunPlan) -> SamplesResult:
    """Read the source into shards.

    Args:
        plan: Plan of the run.
    """
    settings, reporter = samples_settings(plan), partial(progress.advance, Stage.SAMPLES)
    read: SamplesResult = run_here(samples, settings, plan.storage.tables_root, reporter)
    return read


def run_shards(run: Run, read: SamplesResult) -> list[StageRef]:
    """Compute the stages of a run and return their tables, including the samples.

    What earlier runs have computed is found before anything is submitted.

    Args:
        run: The run.
        read: Result of reading its source.
    """
    indexes = RowIndexes(run.tables, run.plan.source.source or "")
    with open_submitter(run) as submitter:
        kept = map_threads(submitter.find_all, read.refs, LOOKUPS_AT_ONCE)
        found = take_unchanged_rows(run, submitter, kept, indexes)
        shards = [ShardRun(number, tables, submitter) for number, tables in enumerate(found)]
        is_kept = all(stage in shard.tables for shard in shards for stage in run.plan.metrics.sharded_stages)
        with nullcontext() if is_kept else working_meanwhile(*_FOR_THE_REPORT):
            refs = compute_shards(run.plan, shards, run.plan.metrics.sharded_stages)
        index_rows(submitter, [shard.tables for shard in shards], indexes)
        return refs
