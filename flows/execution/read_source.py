"""Read the rows of a run, with the settings that its plan has for this."""

from functools import partial

from flows.planning.run_plan import RunPlan
from metric_core.stages import Stage
from tasks.options.narrow import narrow
from tasks.prefect_support.prefect_task import run_here
from tasks.runtime import progress
from tasks.stages.retrieval import RetrievalSettings
from tasks.stages.samples import SamplesResult, SamplesSettings, samples


def read_source(plan: RunPlan) -> SamplesResult:
    """Read the source into shards."""
    settings, reporter = samples_settings(plan), partial(progress.advance, Stage.SAMPLES)
    read: SamplesResult = run_here(samples, settings, plan.storage.tables_root, reporter)
    return read


def samples_settings(plan: RunPlan) -> SamplesSettings:
    """Return the settings of the stage that reads the rows."""
    return narrow(
        plan.source,
        SamplesSettings,
        shard_rows=plan.storage.rows_a_shard,
        required=plan.metrics.required,
        conversations=plan.source.rows,
    )


def retrieval_settings(plan: RunPlan) -> RetrievalSettings:
    """Return the settings of the step that fetches contexts, for a plan with a retriever."""
    return narrow(plan.source, RetrievalSettings)
