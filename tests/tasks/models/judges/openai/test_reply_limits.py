"""Tests of limits on what a judge writes, and of replies without end."""

import asyncio
import json
import threading
import time
from typing import Any

import pytest

from metric_core.prompts.judge_questions import ask_claims, ask_questions, ask_relevant_sentences, ask_verdict
from metric_core.records import AnswerStatus
from tasks.models.judges.batching import JudgeBatcher
from tasks.models.judges.openai.openai_judge import OpenAIJudge
from tasks.models.judges.openai.reply_limits import repeats_itself
from tasks.runtime.activity import ServerActivity, describe_activities
from tasks.runtime.cancellation import Cancellation, cancellable
from tasks.runtime.usage import CutOff
from tests.tasks.models.judges.openai.conftest import OpenJudge, Serve
from tests.tasks.models.judges.openai.fake_server import FULL, PLAIN
from tests.waiting import DEAD_SECONDS, wait_until

TEXT = "The Orla ferry sails twice a day, from Tarn to Lindau and back. It takes two hours. Dogs travel free of charge."
ENDLESS = '{"claims": [' + '"The Orla ferry sails twice a day.", ' * 40
LONG_BUT_DIFFERENT = '{"claims": [' + ", ".join(f'"Passenger {i} of the ferry is {i} years old."' for i in range(40))
THREE_QUESTIONS = '{"questions": [' + ", ".join(f'{{"question": "{i}?", "noncommittal": false}}' for i in "ABC")


def _cut_off(text: str) -> Any:
    def say(body: dict[str, Any]) -> dict[str, Any]:
        limit = body["max_tokens"]
        return {"content": text[: 4 * limit], "finish_reason": "length", "usage": {"completion_tokens": limit}}

    return say


@pytest.mark.parametrize(
    ("question", "limit"),
    [
        (ask_claims("It rains.", None), 128 + 9),
        (ask_claims("雨が降る。", None), 128 + 15),
        (ask_claims("x" * 10_000, None), 2048),
        (ask_questions("It rains.", 3), 128 + 3 * (64 + 9)),
        (ask_relevant_sentences(["a"] * 10, "Which?"), 128 + 6 * 16),
    ],
)
def test_what_is_written_is_limited_by_what_is_read(
    serve: Serve, open_judge: OpenJudge, question: Any, limit: int
) -> None:
    server = serve()
    open_judge(server).generate([question])
    assert server.asked[0]["max_tokens"] == limit


def test_no_reply_gets_more_than_the_maximum(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve()
    open_judge(server, max_output_tokens=100).generate([ask_claims("It rains.", None)])
    assert server.asked[0]["max_tokens"] == 100


def test_a_model_that_reasons_anyway_keeps_the_full_limit(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve(FULL - {"switch"})
    server.shape = _add_reasoning
    open_judge(server).generate([ask_claims("It rains.", None)])
    assert server.asked[0]["max_tokens"] == 2048


def _add_reasoning(reply: dict[str, Any]) -> dict[str, Any]:
    for choice in reply["choices"]:
        choice["message"]["reasoning_content"] = "The user wants ..."
    return reply


def test_a_reply_that_repeats_itself_fails_and_is_not_asked_again(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve(say=_cut_off(ENDLESS))
    batcher = JudgeBatcher(open_judge(server))
    (answer,) = batcher.generate([ask_claims(TEXT, None)])
    limit = 128 + len(TEXT)
    assert (answer.status, answer.cut_off) == (AnswerStatus.FAILED, limit)
    assert answer.reason == "reply cut off at the token limit"
    assert [body["max_tokens"] for body in server.asked] == [limit]
    assert batcher.usage.cut_off == CutOff(replies=1, fewest=limit, most=limit)
    assert any(line.endswith(f"1 reply cut off at {limit} tokens") for line in describe_activities())


def test_a_long_reply_that_does_not_repeat_itself_gets_the_full_limit_once(serve: Serve, open_judge: OpenJudge) -> None:
    complete = json.dumps({"claims": [f"Passenger {i} is {i} years old." for i in range(20)]})

    def say(body: dict[str, Any]) -> dict[str, Any]:
        is_short = body["max_tokens"] < 2048
        return _cut_off(LONG_BUT_DIFFERENT)(body) if is_short else {"content": complete}

    server = serve(say=say)
    heard: list[Any] = []
    (first, second) = open_judge(server).generate(
        [ask_claims(TEXT, None), ask_claims(TEXT + TEXT, None)], lambda i, answer: heard.append((i, answer))
    )
    assert first.status is second.status is AnswerStatus.ANSWERED
    assert first.usage.requests == 2
    assert first.cut_off is None
    assert sorted(body["max_tokens"] for body in server.asked)[-2:] == [2048, 2048]
    assert len(server.asked) == 4
    assert dict(heard) == {0: first, 1: second}
    assert len(heard) == 2


def test_a_reply_that_is_too_long_twice_fails(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve(say=_cut_off(LONG_BUT_DIFFERENT))
    (answer,) = open_judge(server).generate([ask_claims(TEXT, None)])
    assert (answer.reason, answer.cut_off) == ("reply cut off at the token limit", 2048)
    assert len(server.asked) == 2


def test_a_list_that_is_full_is_a_reply_without_end(serve: Serve, open_judge: OpenJudge) -> None:
    def say(body: dict[str, Any]) -> dict[str, Any]:
        most = body["response_format"]["json_schema"]["schema"]["properties"]["claims"]["maxItems"]
        return {"content": json.dumps({"claims": [f"It rains {i}." for i in range(most)]})}

    (answer,) = open_judge(serve(say=say)).generate([ask_claims("It rains.", None)])
    assert (answer.status, answer.value) == (AnswerStatus.FAILED, None)
    assert answer.reason == "reply without end: it fills its list"


def test_list_limits_are_sent_only_to_a_server_that_enforces_them(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve()
    server.shape = _ignore_list_limits
    open_judge(server).generate([ask_questions("It rains.", 3)])
    assert "minItems" not in json.dumps(server.asked[-1])
    assert open_judge(serve(PLAIN)).features.list_limits is False
    assert open_judge(serve()).features.list_limits is True


def _ignore_list_limits(reply: dict[str, Any]) -> dict[str, Any]:
    for choice in reply["choices"]:
        if choice["message"]["content"] == '{"qx7": [7, 7, 7]}':
            choice["message"]["content"] = '{"qx7": [7]}'
    return reply


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ENDLESS, True),
        ('{"claims": ["It rains' + 20 * " and rains", True),
        (LONG_BUT_DIFFERENT, False),
        (THREE_QUESTIONS, False),
        ("", False),
    ],
)
def test_repetition_is_recognized(text: str, expected: bool) -> None:
    assert repeats_itself(text) is expected


def test_a_cancelled_run_closes_its_requests_at_the_server(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve()
    judge = open_judge(server)
    server.delay = 60.0
    runs: list[Cancellation] = []
    stopped = threading.Event()

    def ask() -> None:
        with cancellable() as run:
            runs.append(run)
            with pytest.raises(asyncio.CancelledError):
                judge.choose([ask_verdict(f"claim {i}", "context") for i in range(5)])
        stopped.set()

    threading.Thread(target=ask, daemon=True).start()
    wait_until(lambda: server.in_flight == 5)
    assert any("waiting for 5 replies" in line for line in describe_activities())
    runs[0].cancel()
    assert stopped.wait(DEAD_SECONDS)
    wait_until(lambda: server.in_flight == 0)
    assert not any("waiting for" in line for line in describe_activities() if str(server.port) in line)
    server.delay = 0.0
    assert judge.choose([ask_verdict("It rains.", "Rain.")])[0].label == "yes"


def test_a_request_that_times_out_is_closed_at_the_server(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve()
    judge: OpenAIJudge = open_judge(server, timeout=0.5, max_retries=1)
    server.delay = 60.0
    threading.Thread(target=lambda: judge.choose([ask_verdict("It rains.", "Rain.")]), daemon=True).start()
    assert wait_until(lambda: any("1 timeout" in line for line in describe_activities()))
    server.delay = 0.0
    wait_until(lambda: server.in_flight == 0)


def test_activity_says_what_is_waited_for() -> None:
    activity = ServerActivity("http://gpu1/v1")
    assert activity.describe() is None
    now = time.monotonic()
    ends = [activity.start_request(), activity.start_request()]
    activity.mark_down("http://gpu2/v1")
    activity.count_timeout()
    activity.count_cut_off(412)
    assert activity.describe(now + 43) == (
        "http://gpu1/v1: http://gpu2/v1 is down for 43 s; waiting for 2 replies, 43 s so far; 1 timeout; "
        "1 reply cut off at 412 tokens"
    )
    for end in ends:
        end()
    activity.mark_up("http://gpu2/v1")
    assert activity.describe() == "http://gpu1/v1: 1 timeout; 1 reply cut off at 412 tokens"
