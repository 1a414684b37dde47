"""Settings of stages: when claims are judged against every context."""

from dataclasses import replace

import pytest

from flows.planning.metric_plan import plan_requests
from metric_core.declarations.metric import MetricRequest, constant
from metric_core.metrics.registry import parse_request
from metric_core.stages import Product, Stage
from tasks.options.evaluation_options import EvaluationOptions
from tasks.stages.aggregation import AggregationSettings
from tasks.stages.verdicts import VerdictsSettings

NOISE = parse_request("noise_sensitivity")
CUSTOM = replace(NOISE, key="own", metric=replace(NOISE.metric, name="own", origin="package.module:own"))
ONE_SIDE = replace(
    CUSTOM, metric=replace(CUSTOM.metric, products=constant(Product.RESPONSE_CLAIMS_BY_EACH_CONTEXT)), key="one"
)
RESPONSE, REFERENCE = Product.RESPONSE_CLAIMS_BY_EACH_CONTEXT, Product.REFERENCE_CLAIMS_BY_EACH_CONTEXT
BOTH = {RESPONSE, REFERENCE}


@pytest.mark.parametrize(("judge", "verdict"), [("builtin", "probability"), ("http://localhost:8000/v1", "binary")])
def test_scores_are_computed_with_the_default_of_the_judge(judge: str, verdict: str) -> None:
    options = EvaluationOptions.model_validate({"judge": judge})
    settings = plan_requests(options, [NOISE], set()).stage_settings(options)[Stage.AGGREGATION]
    assert isinstance(settings, AggregationSettings)
    assert settings.verdict == verdict


def by_every_context(verdict: str, *requests: MetricRequest) -> set[Product]:
    options = EvaluationOptions.model_validate({"verdict": verdict})
    settings = plan_requests(options, requests, ()).stage_settings(options)[Stage.VERDICTS]
    assert isinstance(settings, VerdictsSettings)
    return BOTH & set(settings.products)


@pytest.mark.parametrize(
    ("verdict", "requests", "products"),
    [
        ("binary", [NOISE], set()),
        ("probability", [NOISE], BOTH),
        ("binary", [NOISE, CUSTOM], BOTH),
        ("binary", [NOISE, ONE_SIDE], {RESPONSE}),
        ("probability", [ONE_SIDE], {RESPONSE}),
    ],
    ids=[
        "noise sensitivity reads few",
        "probabilities need all",
        "a custom metric may read all",
        "a product of one side",
        "probabilities of one side",
    ],
)
def test_claims_are_judged_against_every_context_that_a_metric_may_read(
    verdict: str, requests: list[MetricRequest], products: set[Product]
) -> None:
    assert by_every_context(verdict, *requests) == products
