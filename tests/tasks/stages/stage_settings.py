"""Settings of stages that compute all that they can."""

from typing import Any

from metric_core.declarations.metric import MetricRequest
from metric_core.stages import PRODUCTS, Product, Stage
from tasks.engine.registry import STAGES
from tasks.options.metric_settings import MetricSettings
from tasks.options.settings import Settings

WITH_METRICS = {stage for stage, definition in STAGES.items() if "metrics" in definition.settings.model_fields}
"""The stages that compute something for each metric."""

_NOT_PACKAGED = Product.ANSWER_SIMILARITY_BY_CROSS_ENCODER
"""The product of a model that is not packaged."""


def settings_of(stage: Stage, *requests: MetricRequest, **values: Any) -> Settings:
    """Settings of a stage with all its products and these metrics."""
    products = tuple(each for each, spec in PRODUCTS.items() if spec.stage is stage and each is not _NOT_PACKAGED)
    metrics = tuple(map(MetricSettings.from_request, requests))
    given = {"products": products, "metrics": metrics, "explained": "all", "planned": tuple(Product), **values}
    fields = STAGES[stage].settings.model_fields
    settings: Settings = STAGES[stage].settings(**{name: value for name, value in given.items() if name in fields})
    return settings
