"""Read the rows of a run."""

from functools import partial

from flows.execution.source_settings import samples_settings
from flows.planning.run_plan import RunPlan
from metric_core.stages import Stage
from tasks.prefect_support.prefect_task import run_here
from tasks.runtime import progress
from tasks.stages.samples import SamplesResult, samples


def read_samples(plan: RunPlan) -> SamplesResult:
    """Read the source into shards.

    Args:
        plan: Plan of the run.
    """
    settings, reporter = samples_settings(plan), partial(progress.advance, Stage.SAMPLES)
    read: SamplesResult = run_here(samples, settings, plan.storage.tables_root, reporter)
    return read
