"""The table of metrics: names, command-line text, the default suite, and that declarations hold together."""

import json
import re
from pathlib import Path

import pytest

from metric_core.columns import COLUMNS
from metric_core.declarations.metric import Metric, MetricRequest
from metric_core.declarations.metric_text import parse_metrics
from metric_core.errors import MetricParameterError, UnknownMetricError
from metric_core.metrics.registry import METRICS, default_suite, parse_request, resolve
from metric_core.question_kinds import QuestionKind
from metric_core.stages import PRODUCTS, Product, closure
from tests.properties.sets import REQUESTS

REQUIRED = {"definition": "Is it rude?"}
ALL_NAMES = [name for metric in METRICS.values() for name in (metric.name, *metric.aliases)]


def parameters_for(metric: Metric) -> dict[str, str]:
    judged = {"judgments": "judge"} if "judgments" in metric.parameters else {}
    return REQUIRED if "definition" in metric.parameters else judged


def test_no_name_means_two_metrics() -> None:
    assert len(set(ALL_NAMES)) == len(ALL_NAMES)


def test_names_and_aliases_are_resolved() -> None:
    cases: list[tuple[str, str]] = [
        ("faithfulness", "faithfulness"),
        ("Answer-Accuracy", "nv_accuracy"),
        ("context_relevance", "nv_context_relevance"),
        ("context_relevancy", "context_relevancy"),
        ("CONTEXT_ENTITIES_RECALL", "context_entity_recall"),
        (" discrete_metric ", "discrete_criteria"),
        ("domain-specific-rubrics", "rubrics"),
    ]
    for name, expected in cases:
        assert resolve(name).name == expected, (name, expected)


def test_the_page_for_users_of_ragas_names_what_its_classes_are_here() -> None:
    page = (Path(__file__).parents[3] / "docs" / "start" / "from-ragas.md").read_text(encoding="utf-8")
    rows = [
        line.split("|")[1:3] for line in page.partition("## Names")[2].partition("\n## ")[0].splitlines() if "`" in line
    ]
    named = [[re.findall(r"`(\w+)", cell) for cell in row] for row in rows if len(row) == 2]
    assert len(named) > 12
    for classes, metrics in named:
        found = [resolve(each).name for each in classes]
        assert list(dict.fromkeys(found)) == metrics, classes


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnknownMetricError, match=r"'semantic_similarty'\. Did you mean semantic_similarity"):
        resolve("semantic_similarty")
    with pytest.raises(UnknownMetricError, match="Run `assay metrics` for a list"):
        resolve("zzz")


def test_command_line_text_is_read() -> None:
    cases: list[tuple[str, str, dict[str, object]]] = [
        ("faithfulness", "faithfulness", {}),
        (" faithfulness ( ) ", "faithfulness", {}),
        ("factual_correctness(mode=recall,beta=0.5)", "factual_correctness", {"mode": "recall", "beta": 0.5}),
        (
            "answer_similarity(threshold=null, encoder=cross)",
            "answer_similarity",
            {"threshold": None, "encoder": "cross"},
        ),
        ("answer_correctness( weights = [1, 0] )", "answer_correctness", {"weights": (1, 0)}),
        (
            "aspect_critic(definition=Is it rude, or not?, strictness=3)",
            "aspect_critic",
            {"definition": "Is it rude, or not?"},
        ),
        ('aspect_critic(definition="a, name=b", name=c)', "aspect_critic", {"definition": "a, name=b", "name": "c"}),
        ("aspect_critic(definition=3 of 4?)", "aspect_critic", {"definition": "3 of 4?"}),
        ("aspect_critic(definition=Is (this) it?)", "aspect_critic", {"definition": "Is (this) it?"}),
        (
            'rubrics(rubrics={"score1_description": "a, b", "score2_description": "c)"})',
            "rubrics",
            {"rubrics": {"score1_description": "a, b", "score2_description": "c)"}},
        ),
    ]
    for text, name, given in cases:
        request = parse_request(text)
        assert request.metric.name == name, (text, name, given)
        assert {key: request.parameters[key] for key in given} == given, (text, name, given)


def test_text_that_cannot_be_used_is_refused() -> None:
    cases: list[tuple[str, str]] = [
        ("", "one metric is written name"),
        ("faithfulness(", "this parenthesis is never closed"),
        ("two words", "wanted a comma between two metrics"),
        ("factual_correctness(recall)", "parameters are written name=value"),
        ("factual_correctness(beta=1, beta=2)", "parameters are written name=value, each once"),
        ("factual_correctness(mode=best)", "mode must be one of 'f1', 'precision', 'recall', got 'best'"),
        ("factual_correctness(beta=NaN)", "beta must be a number from 0 to 1000"),
        ("faithfulness(beta=1)", "faithfulness has no parameter 'beta'"),
        ("aspect_critic", "aspect_critic needs the parameter 'definition'"),
        ("answer_correctness(weights=[0, 0])", "weights must be two numbers of at least 0, not both 0"),
        ("answer_correctness(weights=0.5)", "weights must be two numbers"),
    ]
    for text, message in cases:
        with pytest.raises(MetricParameterError, match=message):
            parse_request(text)


def test_the_default_suite_asks_for_nothing_but_columns() -> None:
    names = [request.metric.name for request in default_suite(set(COLUMNS))]
    user_defined = {"aspect_critic", "discrete_criteria", "numeric_criteria", "rubrics", "string_similarity"}
    on_request = user_defined | {"abstention_accuracy", "over_refusal", "context_sufficiency"}  # more questions per row
    few_need = {"citations", "disagreements", "figures"}
    on_request |= {metric.name for metric in METRICS.values() if metric.family in few_need}
    on_request |= {"key_point_recall", "key_point_precision"}  # the reference stands in for key points
    on_request |= {name for name, metric in METRICS.items() if metric.own_columns}  # columns that few data have
    assert names == [name for name in METRICS if name not in on_request]


def test_a_metric_of_the_default_suite_is_there_if_its_own_columns_are() -> None:
    for metric in (each for each in METRICS.values() if each.own_columns and each.in_default_suite):
        request = metric.request()
        chosen = default_suite({*request.columns, *request.own_columns})
        assert request.key in [each.key for each in chosen]
        assert request.key not in [each.key for each in default_suite({*request.columns, *[*request.own_columns][1:]})]


def test_the_default_suite_leaves_out_what_lacks_a_column() -> None:
    names = [r.metric.name for r in default_suite({"user_input", "response", "retrieved_contexts", "reference"})]
    assert "noise_sensitivity" in names
    assert not {"instance_rubrics", "id_context_recall", "non_llm_context_precision"} & set(names)
    assert default_suite(()) == []


def test_the_default_suite_leaves_out_what_the_judge_cannot_rate() -> None:
    everything, rest = default_suite(set(COLUMNS)), default_suite(set(COLUMNS), can_rate=False)
    missing = [request for request in everything if request not in rest]
    assert "nv_accuracy" in [request.key for request in missing]
    assert all(request.needs_language_model for request in missing)
    assert not any(request.needs_language_model for request in rest)


ASKED_BY_PARAMETER = (METRICS["context_conflict"],)
"""Metrics that ask the judge only if a parameter says so."""


def test_declarations_hold_together() -> None:
    for metric in METRICS.values():
        request = metric.request(parameters_for(metric))
        made_from = {column for product in closure(request.products) for column in PRODUCTS[product].columns}
        assert made_from <= set(request.columns) <= set(COLUMNS), metric
        assert (metric.ratings is not None) == (Product.RATINGS in request.products) or metric in ASKED_BY_PARAMETER
        by_forms = metric.question_kinds == (QuestionKind.REFUSAL,)  # the one rating that needs no language model
        assert metric.language_model == (metric.ratings is not None and not by_forms), metric
        assert metric.summary.endswith("."), metric
        assert metric.question.endswith("?") or metric.question in {"", "{definition}"}, metric
        assert metric.name == metric.name.casefold(), metric


def test_complete_parameters_are_accepted_again() -> None:
    for metric in METRICS.values():
        request = metric.request(parameters_for(metric))
        assert metric.request(request.parameters) == request, metric


@pytest.mark.parametrize("request_", [each for found in REQUESTS.values() for each in found], ids=lambda each: each.key)
def test_a_key_names_its_metric_wherever_a_metric_is_named(request_: MetricRequest) -> None:
    """Long parameters are left out of a key, and required ones may be."""
    read = parse_metrics(request_.key)
    assert [metric.name for metric in read] == [request_.metric.name]
    short = {name: value for name, value in request_.parameters.items() if f"{name}=" in request_.key}
    assert read[0].parameters == json.loads(json.dumps(short))
    needed = {name: value for name, value in request_.parameters.items() if name not in short}
    assert request_.metric.request({**needed, **read[0].parameters}) == request_


@pytest.mark.parametrize(
    "text", ["false", "5", "null", "a, b=c", "a)b", "'quoted'", " x ", "", "Is it (not) rude?", "[1]"]
)
def test_any_text_in_a_key_is_read_as_that_text(text: str) -> None:
    [read] = parse_metrics(METRICS["aspect_critic"].request({"definition": text or "-", "strictness": 3}).key)
    assert read.parameters == {"definition": text or "-", "strictness": 3}
