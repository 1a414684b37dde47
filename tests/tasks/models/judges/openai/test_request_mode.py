"""Tests that the cache key of an answer depends on exactly what is sent for its question."""

from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import product
from typing import Any

import pytest

from metric_core.prompts.judge_questions import (
    ChoiceQuestion,
    GenerateQuestion,
    JudgeQuestion,
    ask_questions,
    ask_verdict,
)
from metric_core.prompts.prompt_set import RenderedPrompt
from metric_core.prompts.reply_schemas import object_schema
from metric_core.question_kinds import RATING_KINDS, QuestionKind
from tasks.models.judges.openai.request_body import choice_request_bodies, generate_request_body
from tasks.models.judges.openai.request_mode import RequestMode, all_request_modes, determinants, get_request_mode
from tasks.models.judges.openai.server_features import ChoiceConstraint, JsonConstraint, ServerFeatures
from tasks.options.judge_server_options import ServerJudgeOptions

PROMPT = RenderedPrompt("Judge.", "It rains.", "It")
SCHEMA = object_schema({"value": {"type": "array", "items": {"type": "integer"}, "maxItems": 3}})
ASPECT = ChoiceQuestion(QuestionKind.ASPECT, {}, ("1", "0"))
INTEGER = GenerateQuestion(QuestionKind.CRITERIA_INTEGER, {}, SCHEMA)
QUESTIONS: dict[str, JudgeQuestion] = {
    "verdict": ask_verdict("c", "p"),
    "voted label": replace(ASPECT, votes=3),
    "JSON": INTEGER,
    "voted JSON": replace(INTEGER, schema=SCHEMA | {"title": "vote 2"}),
    "regenerated questions": ask_questions("It rains.", 3),
}
ABLE = ServerFeatures(
    "m",
    thinking_switch=True,
    choice=ChoiceConstraint.STRUCTURED_OUTPUTS,
    json=JsonConstraint.RESPONSE_FORMAT,
    list_limits=True,
    top_logprobs=20,
    several=True,
    seed=True,
)
FEATURES = [
    ABLE,
    ServerFeatures("m"),
    replace(ABLE, seed=False),
    replace(ABLE, several=False),
    replace(ABLE, thinking_switch=False),
    replace(ABLE, reasons=True, list_limits=False),
]
OTHER_FEATURES: dict[str, Any] = {
    "model": "other",
    "system_role": False,
    "thinking_switch": False,
    "choice": ChoiceConstraint.JSON_SCHEMA,
    "json": JsonConstraint.GUIDED_JSON,
    "list_limits": False,
    "reasons": True,
    "top_logprobs": 5,
    "several": False,
    "seed": False,
}
OPTIONS: list[dict[str, Any]] = [{}, {"temperature": 0.5, "seed": 3}, {"thinking": True, "max_output_tokens": 64}]
OTHER_OPTIONS: dict[str, Any] = {
    "max_output_tokens": 100,
    "temperature": 1.5,
    "seed": 7,
    "thinking": True,
    "extra_body": {"top_k": 5},
}


def options_of(**options: Any) -> ServerJudgeOptions:
    return ServerJudgeOptions(urls=("http://host/v1",), **options)


def request_bodies(
    question: JudgeQuestion, features: ServerFeatures, options: ServerJudgeOptions
) -> list[dict[str, Any]]:
    if isinstance(question, ChoiceQuestion):
        return choice_request_bodies(PROMPT, question, features, options)
    return [generate_request_body(PROMPT, question, features, options)]


def changes(features: ServerFeatures, options: dict[str, Any]) -> Iterator[tuple[ServerFeatures, dict[str, Any]]]:
    """Yield the features and options with one of them changed."""
    yield from ((replace(features, **{name: value}), options) for name, value in OTHER_FEATURES.items())
    yield from ((features, options | {name: value}) for name, value in OTHER_OPTIONS.items())


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_the_key_changes_if_and_only_if_the_request_does(question: JudgeQuestion) -> None:
    mode = get_request_mode(question)
    for features, options in product(FEATURES, OPTIONS):
        mine = options_of(**options)
        for other_features, other_options in changes(features, options):
            theirs = options_of(**other_options)
            is_same = request_bodies(question, features, mine) == request_bodies(question, other_features, theirs)
            # How many log-probabilities were asked for also says how a reply is read.
            reads_alike = mode.wants_json or features.top_logprobs == other_features.top_logprobs
            keys_agree = determinants(mode, features, mine) == determinants(mode, other_features, theirs)
            assert keys_agree == (is_same and reads_alike), (features, options, other_features, other_options)


def test_the_revision_is_in_the_key_and_the_url_is_not() -> None:
    for question in QUESTIONS.values():
        mode = get_request_mode(question)
        base = determinants(mode, ABLE, options_of())
        assert determinants(mode, ABLE, options_of(revision="2")) != base
        assert determinants(mode, replace(ABLE, reply_models=("other",)), options_of()) != base
        assert determinants(mode, ABLE, options_of(concurrency=3, timeout=7, context_window=512, model="m")) == base
        assert determinants(mode, replace(ABLE, software="s", tokenizer=True, window=5), options_of()) == base


def test_every_feature_and_option_is_covered() -> None:
    client = {"software", "window", "limit_field", "tokenizer", "cached_tokens", "prompt_lists", "impossible_logprobs"}
    client |= {"batches", "reply_models", "unknown"}  # the names are part of every key: the test below has them
    assert {field.name for field in fields(ServerFeatures)} == client | set(OTHER_FEATURES)
    assert set(options_of(extra_body={"top_k": 5}).determining()) == {
        *("model", "revision", "language", "prompts", "context_window"),
        *OTHER_OPTIONS,
    }


def test_a_kind_has_all_modes_of_its_questions() -> None:
    for kind in QuestionKind:
        found = set(all_request_modes(kind))
        assert len(found) == (4 if kind in RATING_KINDS else 1)
        assert {mode.kind for mode in found} == {kind}
    assert set(all_request_modes(QuestionKind.VERDICT)) == {get_request_mode(ask_verdict("c", "p"))}
    assert set(all_request_modes(QuestionKind.CLAIMS)) == {RequestMode(QuestionKind.CLAIMS, wants_json=True)}


def test_a_server_with_several_completions_gets_all_votes_in_one_request() -> None:
    assert [body["n"] for body in request_bodies(QUESTIONS["voted label"], ABLE, options_of())] == [3]
    one_each = request_bodies(QUESTIONS["voted label"], replace(ABLE, several=False), options_of(seed=5))
    assert [(body["temperature"], body["seed"]) for body in one_each] == [(0.7, 5), (0.7, 6), (0.7, 7)]


@pytest.mark.parametrize(
    ("name", "temperatures"),
    [
        ("regenerated questions", {"questions_temperature": 0.7}),
        ("voted JSON", {"temperature": 0.0, "votes_temperature": 0.7}),
    ],
)
def test_temperatures_and_limits_that_are_constants_are_in_the_key(name: str, temperatures: dict[str, float]) -> None:
    found = determinants(get_request_mode(QUESTIONS[name]), ABLE, options_of())["options"]
    kept = {key: value for key, value in found.items() if "temperature" in key or key == "max_tokens_per_byte"}
    assert kept == {"max_tokens_per_byte": 1.0, **temperatures}


def test_a_schema_with_another_title_is_not_a_vote() -> None:
    named = replace(INTEGER, schema=SCHEMA | {"title": "Rating"})
    assert request_bodies(named, ABLE, options_of())[0]["temperature"] == 0.0
    (voted,) = request_bodies(QUESTIONS["voted JSON"], ABLE, options_of(seed=5))
    assert (voted["temperature"], voted["seed"]) == (0.7, 7)
