"""Tests that replies that violate the protocol give an answer or a failed answer, never an exception."""

import json
import math
from typing import Any

import pytest

from metric_core.prompts.reply_schemas import CLAIMS_SCHEMA
from metric_core.records import AnswerStatus
from tasks.models.clients.replica import Reply
from tasks.models.judges.openai.reply_parsing import parse_choice_answer, parse_generate_answer
from tasks.models.judges.openai.server_features import ChoiceConstraint, ServerFeatures
from tests.tasks.models.judges.openai.conftest import OpenJudge, Serve

FEATURES = ServerFeatures("m", choice=ChoiceConstraint.STRUCTURED_OUTPUTS, top_logprobs=20)
YES_NO = ("yes", "no")


def reply_with_message(message: Any, **choice: Any) -> Reply:
    return Reply(200, {"choices": [{"message": message} | choice]}, 0.1)


def reply_with_tokens(tokens: Any) -> Reply:
    return reply_with_message({"content": "yes"}, logprobs={"content": tokens})


def test_a_reply_without_text_is_a_failed_answer() -> None:
    cases: list[Reply] = [
        Reply(200, {"choices": None}, 0.1),
        Reply(200, {"choices": []}, 0.1),
        Reply(200, {"choices": {"0": {}}}, 0.1),
        Reply(200, {"choices": [None, "yes"]}, 0.1),
        reply_with_message("yes"),
        reply_with_message({"content": 5}),
        reply_with_message({"content": [None, {"type": "image"}]}),
        reply_with_message({"content": "", "reasoning": {"a": 1}}),
        reply_with_message({"content": "yes", "refusal": True}),
    ]
    for reply in cases:
        assert parse_choice_answer([reply], YES_NO, 1, FEATURES).status is AnswerStatus.FAILED, reply
        assert parse_generate_answer(reply, CLAIMS_SCHEMA).status is AnswerStatus.FAILED, reply


def test_unreadable_log_probabilities_leave_the_label() -> None:
    cases: list[Any] = [
        "none",
        {"tokens": ["yes"], "token_logprobs": [-0.1], "top_logprobs": [{"yes": -0.1}]},
        {"content": 7},
        {"content": [1]},
        {"content": [{"logprob": -1.0}]},
        {"content": [{"token": None, "logprob": -1.0}]},
        {"content": [{"token": "yes", "logprob": "-1"}]},
        {"content": [{"token": "yes", "logprob": -0.1, "top_logprobs": [None]}]},
        {"content": [{"token": "yes", "logprob": -0.1, "top_logprobs": {"yes": -0.1}}]},
        {"content": [{"token": "yes", "logprob": math.nan, "top_logprobs": [{"token": "yes", "logprob": math.nan}]}]},
    ]
    for logprobs in cases:
        answer = parse_choice_answer([reply_with_message({"content": "yes"}, logprobs=logprobs)], YES_NO, 1, FEATURES)
        assert (answer.label, answer.probabilities) == ("yes", None), logprobs


def _tokens(**logprobs: float | None) -> list[dict[str, Any]]:
    top = [{"token": token, "logprob": logprob} for token, logprob in logprobs.items()]
    return [{**top[0], "top_logprobs": top}]


def test_impossible_log_probabilities_are_refused_with_a_warning() -> None:
    cases: list[tuple[Any, str]] = [
        (_tokens(yes=5.0, no=5.0), "some are above 0, such as 5"),
        (_tokens(yes=0.9, no=0.1), "some are above 0, such as 0.9"),
        (_tokens(yes=math.inf), "some are above 0"),
        (_tokens(yes=-0.1, no=-0.2), "the probabilities of different tokens add up to 1.724"),
        (_tokens(yes=0.0, no=0.0), "the probabilities of different tokens add up to 2"),
        (_tokens(yes=-3.0, no=-3.0, y=-3.0, n=-3.0), "4 different tokens are all equally likely"),
        (_tokens(yes=math.nan, no=-1.0), "some are not numbers"),
        (_tokens(yes=-0.1, no=math.nan), "some are not numbers"),
    ]
    for tokens, problem in cases:
        answer = parse_choice_answer([reply_with_tokens(tokens)], YES_NO, 1, FEATURES)
        assert (answer.label, answer.probabilities) == ("yes", None), (tokens, problem)
        assert f"log-probabilities are impossible ({problem}" in (answer.warning or ""), (tokens, problem)


@pytest.mark.parametrize(
    "tokens",
    [
        _tokens(yes=1e-6, no=-15.0),
        _tokens(yes=-0.01, no=-4.7),
        _tokens(yes=-0.1, no=None),
        _tokens(yes=0.0, no=-9999.0, y=-9999.0, n=-9999.0),
        _tokens(yes=-0.5, no=-math.inf, y=-1.0),
        _tokens(yes=math.log(0.5), no=math.log(0.5)),
    ],
)
def test_rounded_and_excluded_log_probabilities_are_possible(tokens: Any) -> None:
    answer = parse_choice_answer([reply_with_tokens(tokens)], YES_NO, 1, FEATURES)
    assert (answer.label, answer.warning) == ("yes", None)


@pytest.mark.parametrize(
    "usage", ["much", [1], {"prompt_tokens": "5"}, {"prompt_tokens": -5}, {"prompt_tokens_details": [1]}]
)
def test_malformed_counts_count_as_0(usage: Any) -> None:
    reply = Reply(200, {"choices": [{"message": {"content": "yes"}}], "usage": usage}, 0.1)
    answer = parse_choice_answer([reply], YES_NO, 1, FEATURES)
    assert (answer.label, answer.usage.prompt_tokens, answer.usage.cached_tokens) == ("yes", 0, 0)


def test_a_message_may_come_in_parts() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    answer = parse_choice_answer(
        [reply_with_message({"content": [thought, {"type": "text", "text": "yes"}]})], YES_NO, 1, FEATURES
    )
    assert (answer.label, answer.reply) == ("yes", "yes")
    unfinished = reply_with_message({"content": [thought]}, finish_reason="length")
    assert parse_choice_answer([unfinished], YES_NO, 1, FEATURES).reason == "unfinished thought"


def test_an_error_with_status_200_keeps_its_message() -> None:
    answer = parse_choice_answer([Reply(200, {"error": {"message": "upstream is busy"}}, 0.1)], YES_NO, 1, FEATURES)
    assert (answer.reason, answer.reply) == ("reply without content", "upstream is busy")


def test_half_a_character_is_not_a_usable_reply() -> None:
    text = '{"claims": ["It costs \\ud83d a day."]}'
    answer = parse_generate_answer(reply_with_message({"content": text}), CLAIMS_SCHEMA)
    assert (answer.status, answer.reason) == (AnswerStatus.FAILED, "reply holds half of a character")
    whole = parse_generate_answer(
        reply_with_message({"content": text.replace("\\ud83d", "\\ud83d\\ude00")}), CLAIMS_SCHEMA
    )
    assert whole.value == {"claims": ["It costs 😀 a day."]}
    Reply(400, {"message": "\ud83d"}, 0.1).message.encode()


def test_a_reply_of_brackets_only_is_text() -> None:
    deep = "[" * 100_000
    assert parse_generate_answer(reply_with_message({"content": deep}), CLAIMS_SCHEMA).status is AnswerStatus.FAILED


def test_probing_a_server_with_malformed_replies(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve()
    odd = {"usage": {"prompt_tokens_details": "none"}, "choices": [{"message": {"content": "yes"}, "logprobs": "none"}]}
    server.shape = lambda reply: json.loads(json.dumps(reply | odd))
    features = open_judge(server).features
    assert (features.choice, features.top_logprobs, features.cached_tokens) == (ChoiceConstraint.NONE, 0, False)
