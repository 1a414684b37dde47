"""Narrow the configuration of a run to the settings of its stages."""

from collections.abc import Collection
from typing import Any

from flows.config.run_config import RunConfig
from flows.execution.plan import Plan
from flows.execution.source_reading import rows_of_conversations
from metric_core.records import Side
from metric_core.stages import PRODUCTS, Product, Stage
from tasks.options.judged_settings import JudgedSettings
from tasks.options.metric_settings import MetricSettings
from tasks.options.narrow import narrow
from tasks.options.retriever_options import RetrieverOptions
from tasks.options.settings import Settings
from tasks.stages.registry import STAGES
from tasks.stages.retrieval import RetrievalSettings
from tasks.stages.samples import SamplesSettings


def samples_settings(config: RunConfig, plan: Plan) -> SamplesSettings:
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


def stage_settings(config: RunConfig, plan: Plan) -> dict[Stage, Settings]:
    """Return the settings of every stage that works shard by shard.

    A stage receives the fields of its settings class: from the plan if the plan decides them, else from the
    configuration.
    """
    settings: dict[Stage, Settings] = {}
    for stage, definition in STAGES.items():
        decided = {
            "products": plan.products_of(stage),
            "metrics": _metrics_of_stage(plan, stage),
            "verdict": config.verdict_kind,
            "count": plan.question_count,
            "every_context": sides_by_every_context(config, plan),
            "explained": "unsupported" if config.explain == "none" else config.explain,
            "planned": tuple(sorted(plan.products)),
            "refresh": stage in config.refresh,
        }
        fields: Collection[str] = definition.settings.model_fields
        given = {name: value for name, value in decided.items() if name in fields}
        settings[stage] = narrow(config, definition.settings, **given)
    return settings


def sides_by_every_context(config: RunConfig, plan: Plan) -> tuple[Side, ...]:
    """Return the sides whose claims are all judged against each context, whether noise sensitivity reads it or not.

    With probabilities it reads all verdicts. A product that names one side has all verdicts on it, and only a
    user-defined metric itself knows what it reads of the product for both sides.
    """
    custom = (request for request in plan.requests if request.metric.origin)
    both = Product.CLAIMS_BY_EACH_CONTEXT in plan.products and config.verdict_kind == "probability"
    both = both or any(Product.CLAIMS_BY_EACH_CONTEXT in request.products for request in custom)
    by_side = {
        Side.RESPONSE: Product.RESPONSE_CLAIMS_BY_EACH_CONTEXT,
        Side.REFERENCE: Product.REFERENCE_CLAIMS_BY_EACH_CONTEXT,
    }
    return tuple(side for side, product in by_side.items() if both or product in plan.products)


def judged_settings(config: RunConfig) -> JudgedSettings:
    """Return the settings with which a stage asks the judge of the configuration."""
    return narrow(config, JudgedSettings, refresh=False)


def metrics_of(plan: Plan) -> tuple[MetricSettings, ...]:
    """Return the metrics of a plan as settings."""
    return tuple(MetricSettings.from_request(request) for request in plan.requests)


def _metrics_of_stage(plan: Plan, stage: Stage) -> tuple[MetricSettings, ...]:
    """Return the metrics that read a product of the stage; all for a stage without products."""
    products = {product for product, spec in PRODUCTS.items() if spec.stage is stage}
    if stage is Stage.EXPLANATIONS:
        products = {Product.RATINGS}
    if stage is Stage.VERDICTS:  # verdicts on claims are the same whichever metrics read them
        products = {Product.REQUESTED_VERDICTS}
    return tuple(
        MetricSettings.from_request(request)
        for request in plan.requests
        if not products or products & set(request.products)
    )
