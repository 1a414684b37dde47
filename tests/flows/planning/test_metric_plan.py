"""The plan: each shared product once, two levels of judging, and clear messages if a metric cannot run."""

from pathlib import Path
from typing import Any

import pytest

from flows.config.run_config import RunConfig
from flows.planning.metric_plan import MetricPlan, make_plan
from flows.planning.planner import draft_plan
from metric_core.columns import COLUMNS
from metric_core.errors import ConfigError, SourceError
from metric_core.metrics.registry import METRICS
from metric_core.stages import PRODUCTS, Product, Stage
from tasks.engine.registry import LEVELS, STAGES

REFERENCE_DATA = ("user_input", "response", "retrieved_contexts", "reference")
JUDGED = {Stage.FOLLOW_UPS, Stage.CLAIMS, Stage.QUESTIONS, Stage.RATINGS, Stage.VERDICTS}


def plan(*metrics: str, columns: tuple[str, ...] = REFERENCE_DATA) -> MetricPlan:
    return make_plan(RunConfig(metrics=metrics or None), columns)


def test_metric_includes_the_inputs_of_its_products() -> None:
    made = plan("faithfulness")
    results = (Stage.LANGUAGES, Stage.AGGREGATION, Stage.DIAGNOSIS, Stage.REPORTING)
    assert made.stages == (Stage.SAMPLES, Stage.CLAIMS, Stage.VERDICTS, *results)
    assert made.products_of(Stage.CLAIMS) == (Product.RESPONSE_CLAIMS,)
    assert made.inputs_of(Stage.VERDICTS) == (Stage.SAMPLES, Stage.CLAIMS)


def test_shared_product_is_planned_once() -> None:
    made = plan("faithfulness", "factual_correctness", "answer_correctness", "noise_sensitivity")
    assert made.products_of(Stage.CLAIMS) == (Product.RESPONSE_CLAIMS, Product.REFERENCE_CLAIMS)
    assert made.users_of(Product.RESPONSE_CLAIMS_BY_REFERENCE) == (
        "factual_correctness",
        "answer_correctness",
        "noise_sensitivity",
    )


def test_products_depend_on_parameters() -> None:
    assert Product.REFERENCE_CLAIMS not in plan("factual_correctness(mode=precision)").products
    assert Product.REFERENCE_SENTENCES in plan("context_recall(unit=sentence)").products
    assert Product.REFERENCE_CLAIMS not in plan("context_recall(unit=sentence)").products


def test_no_judge_stage_is_planned_for_metrics_without_a_judge() -> None:
    made = plan("answer_similarity", "context_entity_recall", "string_similarity")
    assert not JUDGED & set(made.stages)


def test_judging_always_has_two_levels() -> None:
    requests = [name for name, metric in METRICS.items() if metric.in_default_suite and not metric.own_columns]
    made = plan(*requests, columns=tuple(COLUMNS))
    judged = [[stage for stage in level if stage in made.stages and stage in JUDGED] for level in LEVELS]
    assert [level for level in judged if level] == [
        [Stage.FOLLOW_UPS, Stage.CLAIMS, Stage.QUESTIONS],
        [Stage.RATINGS, Stage.VERDICTS],
    ]


def test_a_stage_reads_only_stages_of_earlier_levels() -> None:
    order = {stage: number for number, level in enumerate(LEVELS) for stage in level}
    for stage, definition in STAGES.items():
        assert all(order[before] < order[stage] for before in definition.reads), stage


def test_every_product_is_made_from_products_of_earlier_or_the_same_stages() -> None:
    order = {stage: number for number, level in enumerate(LEVELS) for stage in level}
    for spec in PRODUCTS.values():
        for required in spec.requires:
            assert order[PRODUCTS[required].stage] <= order[spec.stage]


def test_plan_asks_the_largest_number_of_questions_of_any_metric() -> None:
    assert plan("answer_relevancy", "answer_relevancy(strictness=5)").question_count == 5
    assert plan("faithfulness").question_count == 0


def test_columns_choose_the_metrics_by_default_and_others_are_reported() -> None:
    made = plan(columns=("user_input", "response"))
    assert [request.key for request in made.requests] == ["answer_relevancy"]
    assert made.left_out["faithfulness"] == ("retrieved_contexts",)


@pytest.mark.parametrize(
    ("judge", "is_computed"),
    [
        ("builtin", False),
        ({"backend": "verifier", "verifier": {"model": "models/factcg"}}, False),
        ("minicheck-7b@http://localhost:8000/v1", False),
        ("http://localhost:8000/v1", True),
        ({"ratings": "http://localhost:8000/v1"}, True),
        ({"backend": "my_package:MyJudge"}, True),
    ],
)
def test_a_judge_that_cannot_rate_is_not_asked_to_by_default(judge: Any, is_computed: bool) -> None:
    made = make_plan(RunConfig(judge=judge), REFERENCE_DATA)
    assert ("nv_accuracy" in [request.key for request in made.requests]) is is_computed
    assert made.left_out.get("nv_accuracy") == (None if is_computed else ())
    named = make_plan(RunConfig(judge=judge, metrics=("nv_accuracy",)), REFERENCE_DATA)
    assert [request.key for request in named.requests] == ["nv_accuracy"]


def test_data_that_fit_no_metric_are_an_error_that_names_their_columns() -> None:
    with pytest.raises(SourceError, match=r"has the sample columns session_id.*column_map"):
        plan(columns=("session_id", "rubrics_of_mine"))


def test_repeated_metric_is_refused() -> None:
    with pytest.raises(ConfigError, match="asked for twice"):
        plan("faithfulness", "faithfulness")


def test_metric_with_different_parameters_is_two_metrics() -> None:
    made = plan("noise_sensitivity", "noise_sensitivity(mode=irrelevant)")
    assert [request.key for request in made.requests] == ["noise_sensitivity", "noise_sensitivity(mode=irrelevant)"]


def test_explanations_need_the_option_and_verdicts_on_claims() -> None:
    wanted = RunConfig(metrics=("faithfulness",), explain="unsupported")
    made = make_plan(wanted, REFERENCE_DATA)
    assert Stage.EXPLANATIONS in made.stages
    assert made.inputs_of(Stage.EXPLANATIONS) == (Stage.SAMPLES, Stage.CLAIMS, Stage.VERDICTS)
    assert Stage.EXPLANATIONS not in made.inputs_of(Stage.AGGREGATION)
    assert Stage.EXPLANATIONS not in plan("faithfulness").stages
    for metric in ("context_precision", "context_relevancy", "answer_similarity"):
        without = make_plan(wanted.model_copy(update={"metrics": (metric,)}), REFERENCE_DATA)
        assert Stage.EXPLANATIONS not in without.stages


def test_stage_to_refresh_must_be_one_of_the_run(tmp_path: Path) -> None:
    source = tmp_path / "rows.jsonl"
    source.write_text('{"user_input": "Q?", "response": "A.", "reference": "A."}\n', encoding="utf-8")
    config = RunConfig(source=str(source), metrics=("string_similarity",), refresh=(Stage.AGGREGATION,))
    assert draft_plan(config).metrics.sharded_stages == (Stage.LANGUAGES, Stage.AGGREGATION, Stage.DIAGNOSIS)
    with pytest.raises(ConfigError, match="refresh names verdicts, which this run does not compute; it has samples, "):
        draft_plan(config.model_copy(update={"refresh": (Stage.VERDICTS,)}))
