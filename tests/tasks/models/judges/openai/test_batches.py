"""Several conversations in one request: the answers are those of single requests, and none spoils another."""

from dataclasses import replace
from typing import Any

import pytest

from metric_core.prompts.judge_questions import ChoiceQuestion, ask_claims, ask_questions, ask_refusal, ask_verdict
from metric_core.question_kinds import QuestionKind
from metric_core.records import AnswerStatus
from tasks.metering.meter import Meter, use_meter
from tasks.metering.throughput import measure_servers
from tasks.models.judges.openai.context_window import TOO_LONG
from tasks.models.judges.protocol import ChoiceAnswer
from tasks.options import judge_server_options
from tasks.runtime.usage import Usage
from tests.tasks.models.judges.openai.conftest import OpenJudge, Serve
from tests.tasks.models.judges.openai.fake_server import BATCHES, Fault, step

QUESTIONS = [ask_verdict(f"claim {i}", f"context {i // 8}") for i in range(40)]


def probable(body: dict[str, Any]) -> dict[str, Any] | None:
    """Return an answer that depends on the conversation."""
    if "structured_outputs" not in body:
        return None
    share = 0.5 + len(set(body["messages"][-1]["content"].split()[-30:])) / 100
    return {"content": "yes", "steps": [step("yes", {"yes": share, "no": 1 - share})]}


def content_of(answer: ChoiceAnswer) -> tuple[Any, ...]:
    return answer.votes, answer.probabilities, answer.reply


def total(answers: list[ChoiceAnswer]) -> Usage:
    return sum((answer.usage for answer in answers), Usage())


def test_answers_and_their_order_are_those_of_single_requests(serve: Serve, open_judge: OpenJudge) -> None:
    server, plain = serve(BATCHES, say=probable), serve(say=probable)
    judge, single = open_judge(server), open_judge(plain)
    questions = [*QUESTIONS, ChoiceQuestion(QuestionKind.VERDICT, {"context": "c", "claim": "d"}, ("a", "b"))]
    together, alone = judge.choose(questions), single.choose(questions)
    assert judge.features.batches
    assert not single.features.batches
    assert [(a.votes, a.probabilities, a.reply) for a in together] == [
        (a.votes, a.probabilities, a.reply) for a in alone
    ]
    assert [len(batch) for batch in server.batches] == [16, 16, 8]
    assert len(server.asked) == 1  # the only question with these labels
    assert judge.fingerprint(QuestionKind.VERDICT) == single.fingerprint(QuestionKind.VERDICT)


def test_requests_and_tokens_are_counted_exactly(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve(BATCHES)
    usage = total(open_judge(server).choose(QUESTIONS))
    assert (usage.requests, usage.prompt_tokens, usage.output_tokens) == (3, 4000, 40)
    assert (usage.cached_tokens, usage.unreported_tokens, usage.splits) == (0, 4000, 0)


def test_texts_of_like_length_are_asked_for_together(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve(BATCHES)
    judge = open_judge(server)
    claims = [ask_claims("It rains. " * words, None) for words in (1, 1, 2, 60, 60)]
    answers = judge.generate([*claims, *(ask_questions(f"It rains {i}.", 3) for i in range(6))])
    assert [answer.status for answer in answers] == [AnswerStatus.ANSWERED] * 11
    assert max(map(len, server.batches)) == 4
    for batch in server.batches:
        schemas = [body["response_format"] for body in batch]
        assert all(schema == schemas[0] for schema in schemas)
    limits = sorted(body["max_tokens"] for batch in server.batches for body in batch)
    assert limits[-1] <= 2 * max(body["max_tokens"] for body in server.asked or [{"max_tokens": limits[-1]}])


@pytest.mark.parametrize("status", [400, 500])
def test_a_bad_conversation_does_not_fail_its_neighbours(serve: Serve, open_judge: OpenJudge, status: int) -> None:
    message = {"error": {"message": "This model's maximum context length is 9 tokens"}}

    def say(body: dict[str, Any]) -> Fault | None:
        return Fault(status, message) if "claim 7\n" in body["messages"][-1]["content"] else None

    server = serve(BATCHES, say=say)
    answers = open_judge(server, max_retries=1).choose(QUESTIONS[:16])
    failed = [i for i, answer in enumerate(answers) if answer.status is not AnswerStatus.ANSWERED]
    assert failed == [7]
    assert answers[7].reason == TOO_LONG
    usage = total(answers)
    assert usage.splits == 1
    assert usage.requests == 1 + len(server.asked)


def test_a_reply_that_is_not_one_choice_each_is_not_used(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve(BATCHES)
    judge = open_judge(server)
    server.shape_batch = lambda reply: {**reply, "choices": reply["choices"][1:]}
    answers = judge.choose(QUESTIONS)
    assert {answer.label for answer in answers} == {"yes"}
    assert len(server.asked) == 40
    seen = len(server.batches)
    judge.choose(QUESTIONS)
    assert len(server.batches) == seen  # it is not tried again


def test_a_replica_without_the_endpoint_gets_single_requests(
    serve: Serve, open_judge: OpenJudge, caplog: pytest.LogCaptureFixture
) -> None:
    able, unable = serve(BATCHES), serve(BATCHES)
    judge = open_judge(able, unable)
    unable.abilities.discard("batch")
    questions = [ask_verdict(f"claim {i}", f"context {i // 8}") for i in range(200)]
    for _ in range(2):  # the other replica may take over what the first requests together were refused for
        assert {answer.label for answer in judge.choose(questions)} == {"yes"}
    assert able.batches
    assert unable.asked
    assert caplog.text.count("does not answer several conversations") == 1


def test_a_server_that_answers_several_otherwise_gets_single_requests(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve(BATCHES)

    def shape(reply: dict[str, Any]) -> dict[str, Any]:
        other = {"logprobs": {"content": [step("yes", {"yes": 0.6, "no": 0.4})]}}
        return {**reply, "choices": [{**choice, **other} for choice in reply["choices"]]}

    server.shape_batch = shape
    judge = open_judge(server)
    assert not judge.features.batches
    judge.choose(QUESTIONS)
    assert not server.batches


def test_busy_servers_get_the_same_request_again(serve: Serve, open_judge: OpenJudge) -> None:
    faults = [Fault(429), Fault(503)]
    server = serve(BATCHES, say=lambda _body: faults.pop() if faults else None)
    answers = open_judge(server, concurrency=128).choose(QUESTIONS[:16])
    assert {answer.label for answer in answers} == {"yes"}
    assert not server.asked
    assert (total(answers).requests, total(answers).splits) == (2, 0)


@pytest.mark.parametrize(("concurrency", "largest"), [(1, 0), (8, 2), (32, 8)])
def test_conversations_in_flight_are_limited(
    serve: Serve, open_judge: OpenJudge, concurrency: int, largest: int
) -> None:
    server = serve(BATCHES)
    judge = open_judge(server, concurrency=concurrency)
    server.most_in_flight, server.delay = 0, 0.01
    judge.choose(QUESTIONS)
    assert server.most_in_flight <= concurrency
    assert max(map(len, server.batches), default=0) == largest


def test_more_are_in_flight_at_a_server_that_answers_soon(
    serve: Serve, open_judge: OpenJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = [ask_verdict(f"claim {i}", f"context {i // 8}") for i in range(200)]
    for free, most in ((9, 8), (8, 32)):
        monkeypatch.setattr(judge_server_options, "RISES_FROM", free)
        server = serve(BATCHES)
        judge = open_judge(server, concurrency=8)
        server.most_in_flight, server.delay = 0, 0.01
        judge.choose(questions)
        assert server.most_in_flight <= most
        assert (server.most_in_flight > 8) == (most > 8)


def test_votes_are_asked_for_alone(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve(BATCHES)
    questions = [replace(ask_refusal(f"question {i}", "response"), votes=3) for i in range(4)]
    answers = open_judge(server).choose(questions)
    assert [len(answer.votes) for answer in answers] == [3] * 4
    assert not server.batches


def test_cached_tokens_are_those_that_the_server_counted(serve: Serve, open_judge: OpenJudge) -> None:
    with use_meter(Meter()) as meter:
        for abilities, source, cached in ((BATCHES | {"counters"}, "counters", 3200), (BATCHES, "estimate", None)):
            server = serve(abilities)
            open_judge(server).choose(QUESTIONS)
            entry = measure_servers(meter.records(), rows=4)
            assert entry is not None
            found = entry.servers[-1]
            assert (found.cached_tokens_from, found.cached_tokens) == (source, cached)
            assert found.prompt_tokens == 4000
