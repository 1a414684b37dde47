"""Read the rows of a run."""

from functools import partial

from flows.config.run_config import RunConfig, tables_root
from flows.execution.plan import Plan
from flows.execution.stage_settings import samples_settings
from metric_core.stages import Stage
from tasks.runtime import progress
from tasks.stages.prefect_task import run_here
from tasks.stages.samples import SamplesResult, samples


def read_samples(config: RunConfig, plan: Plan) -> SamplesResult:
    """Read the source into shards.

    Args:
        config: Configuration of the run.
        plan: Plan of the run.
    """
    settings, reporter = samples_settings(config, plan), partial(progress.advance, Stage.SAMPLES)
    read: SamplesResult = run_here(samples, settings, tables_root(config), reporter)
    return read
