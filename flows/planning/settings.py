"""Derive the settings of the stages of a run: what its metrics decide, and the models that its options name."""

from collections.abc import Collection, Mapping
from typing import Any

from flows.planning.metric_plan import MetricPlan
from metric_core.records import Side
from metric_core.stages import PRODUCTS, Product, Stage
from tasks.options.evaluation_options import EvaluationOptions
from tasks.options.metric_settings import MetricSettings
from tasks.options.narrow import narrow
from tasks.options.settings import Settings
from tasks.stages.registry import STAGES


def stage_settings(
    options: EvaluationOptions, metrics: MetricPlan, refresh: Collection[Stage] = ()
) -> dict[Stage, Settings]:
    """Return the settings of every stage that works shard by shard.

    A stage receives the fields of its settings class: from the metrics if these decide them, else from the options.

    Args:
        options: Options of the evaluation.
        metrics: Metrics of the run.
        refresh: Stages that ask the judge again.
    """
    return {
        stage: narrow(options, definition.settings, **_decided(stage, metrics, refresh))
        for stage, definition in STAGES.items()
    }


def settings_for_metrics(
    settings: Mapping[Stage, Settings], metrics: MetricPlan, refresh: Collection[Stage] = ()
) -> dict[Stage, Settings]:
    """Return the settings of the stages for other metrics, with the same models.

    Args:
        settings: Settings of all stages.
        metrics: The other metrics.
        refresh: Stages that ask the judge again.
    """
    return {stage: each.model_copy(update=_decided(stage, metrics, refresh)) for stage, each in settings.items()}


def _decided(stage: Stage, metrics: MetricPlan, refresh: Collection[Stage]) -> dict[str, Any]:
    """Return the fields of the settings of a stage that the metrics decide."""
    decided = {
        "products": metrics.products_of(stage),
        "metrics": _metrics_of_stage(stage, metrics),
        "verdict": metrics.verdict,
        "count": metrics.question_count,
        "every_context": sides_by_every_context(metrics),
        "explained": "unsupported" if metrics.explain == "none" else metrics.explain,
        "planned": tuple(sorted(metrics.products)),
        "refresh": stage in refresh,
    }
    fields: Collection[str] = STAGES[stage].settings.model_fields
    return {name: value for name, value in decided.items() if name in fields}


def sides_by_every_context(metrics: MetricPlan) -> tuple[Side, ...]:
    """Return the sides whose claims are all judged against each context, whether noise sensitivity reads it or not.

    With probabilities it reads all verdicts. A product that names one side has all verdicts on it, and only a
    user-defined metric itself knows what it reads of the product for both sides.
    """
    custom = (request for request in metrics.requests if request.metric.origin)
    both = Product.CLAIMS_BY_EACH_CONTEXT in metrics.products and metrics.verdict == "probability"
    both = both or any(Product.CLAIMS_BY_EACH_CONTEXT in request.products for request in custom)
    by_side = {
        Side.RESPONSE: Product.RESPONSE_CLAIMS_BY_EACH_CONTEXT,
        Side.REFERENCE: Product.REFERENCE_CLAIMS_BY_EACH_CONTEXT,
    }
    return tuple(side for side, product in by_side.items() if both or product in metrics.products)


def metrics_of(metrics: MetricPlan) -> tuple[MetricSettings, ...]:
    """Return planned metrics as settings."""
    return tuple(MetricSettings.from_request(request) for request in metrics.requests)


def _metrics_of_stage(stage: Stage, metrics: MetricPlan) -> tuple[MetricSettings, ...]:
    """Return the metrics that read a product of the stage; all for a stage without products."""
    products = {product for product, spec in PRODUCTS.items() if spec.stage is stage}
    if stage is Stage.EXPLANATIONS:
        products = {Product.RATINGS}
    if stage is Stage.VERDICTS:  # verdicts on claims are the same whichever metrics read them
        products = {Product.REQUESTED_VERDICTS}
    return tuple(
        MetricSettings.from_request(request)
        for request in metrics.requests
        if not products or products & set(request.products)
    )
