"""Narrow a configuration to the settings of stages, for the modules that take a whole configuration."""

from dataclasses import replace
from typing import Any

from flows.config.run_config import RunConfig
from flows.planning import stage_settings as planned
from flows.planning.metric_plan import MetricPlan
from flows.planning.source_reading import rows_of_conversations
from flows.planning.stage_settings import metrics_of
from metric_core.records import Side
from metric_core.stages import Stage
from tasks.models.run_models import RunModels
from tasks.options.judged_settings import JudgedSettings
from tasks.options.narrow import narrow
from tasks.options.retriever_options import RetrieverOptions
from tasks.options.settings import Settings
from tasks.stages.retrieval import RetrievalSettings
from tasks.stages.samples import SamplesSettings
from tasks.stages.stage_task import STAGE_TASKS, TableStorage

__all__ = [
    "judged_settings",
    "metrics_of",
    "retrieval_settings",
    "samples_settings",
    "sides_by_every_context",
    "stage_settings",
    "storage_of",
    "use_fetched_contexts",
]


def samples_settings(config: RunConfig, plan: MetricPlan) -> SamplesSettings:
    """Return the settings of the stage that reads the rows."""
    return narrow(
        config,
        SamplesSettings,
        shard_rows=config.rows_a_shard(),
        required=plan.required,
        conversations=rows_of_conversations(config),
    )


def retrieval_settings(config: RunConfig, retriever: RetrieverOptions) -> RetrievalSettings:
    """Return the settings of the step that fetches contexts."""
    return narrow(config, RetrievalSettings, retriever=retriever)


def use_fetched_contexts(config: RunConfig, source: str) -> RunConfig:
    """Return the configuration for a question set whose contexts have been fetched.

    Args:
        config: Configuration with a retriever.
        source: File with the fetched rows, whose columns already have the names of sample columns.
    """
    changes: dict[str, Any] = {"source": source, "retriever": None, "column_map": {}, "id_column": None, "limit": None}
    return config.model_copy(update=changes)


def stage_settings(config: RunConfig, plan: MetricPlan) -> dict[Stage, Settings]:
    """Return the settings of every stage that works shard by shard."""
    return planned.stage_settings(config, replace(plan, verdict=config.verdict_kind), config.refresh)


def sides_by_every_context(config: RunConfig, plan: MetricPlan) -> tuple[Side, ...]:
    """Return the sides whose claims are all judged against each context."""
    return planned.sides_by_every_context(replace(plan, verdict=config.verdict_kind))


def judged_settings(config: RunConfig) -> JudgedSettings:
    """Return the settings with which a stage asks the judge of the configuration."""
    return config.judged


def storage_of(stage: Stage, settings: Settings, config: RunConfig, models: RunModels) -> TableStorage:
    """Return the place of a stage's tables in the table store."""
    return TableStorage(
        config.tables_root, STAGE_TASKS[stage].identity(settings, models), refresh=stage in config.refresh
    )
