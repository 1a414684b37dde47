"""Narrow the plan of a run to the settings of the steps that read its rows."""

from flows.planning.run_plan import RunPlan
from tasks.options.narrow import narrow
from tasks.stages.retrieval import RetrievalSettings
from tasks.stages.samples import SamplesSettings


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
