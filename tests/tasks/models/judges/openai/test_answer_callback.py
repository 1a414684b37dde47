"""Tests that `on_answer` gets each answer once, as soon as it is available, and before a lost server is reported."""

import threading
from asyncio import CancelledError
from collections import Counter
from contextlib import suppress
from contextvars import copy_context
from typing import Any

import pytest

from metric_core.errors import JudgeError
from metric_core.prompts.judge_questions import ChoiceQuestion, ask_claims, ask_verdict
from metric_core.question_kinds import QuestionKind
from metric_core.records import AnswerStatus
from tasks.models.judges.protocol import ChoiceAnswer, GenerateAnswer
from tasks.runtime.cancellation import cancellable
from tests.tasks.models.judges.openai.conftest import OpenJudge, Serve
from tests.tasks.models.judges.openai.fake_server import FULL, Fault
from tests.waiting import DEAD_SECONDS

QUESTIONS = [ask_verdict(f"claim {i}", f"context {i % 10}") for i in range(40)]
ASPECT = ChoiceQuestion(QuestionKind.ASPECT, {"response": "r"}, ("yes", "no"), {"definition": "Is it kind?"}, votes=3)


def _user(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"])


def test_each_answer_is_received_once_and_is_the_returned_one(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve(say=lambda body: Fault(400) if "\nclaim 3\n" in _user(body) else None)
    received: list[tuple[int, ChoiceAnswer]] = []
    answers = open_judge(server, concurrency=8).choose(QUESTIONS, lambda *call: received.append(call))
    assert sorted(position for position, _ in received) == list(range(40))
    assert all(answer is answers[position] for position, answer in received)
    assert [position for position, answer in received if answer.status is AnswerStatus.FAILED] == [3]


def test_answers_are_received_in_the_order_of_the_replies(serve: Serve, open_judge: OpenJudge) -> None:
    received: list[int] = []
    open_judge(serve(), concurrency=1).choose(QUESTIONS, lambda position, _: received.append(position))
    assert received == sorted(range(40), key=lambda i: f"context {i % 10}")


def test_generate_answers_are_received(serve: Serve, open_judge: OpenJudge) -> None:
    received: list[tuple[int, GenerateAnswer]] = []
    claims = [ask_claims(f"It rains {i} hours.", None) for i in range(5)]
    answers = open_judge(serve()).generate(claims, lambda *call: received.append(call))
    assert dict(received) == dict(enumerate(answers))


def test_votes_are_received_together_with_the_last(serve: Serve, open_judge: OpenJudge) -> None:
    received: list[tuple[int, ChoiceAnswer]] = []
    server = serve(FULL - {"n"}, say=lambda body: {"content": "no" if body["seed"] == 1 else "yes"})
    open_judge(server).choose([ASPECT], lambda *call: received.append(call))
    assert [(position, answer.votes) for position, answer in received] == [(0, ("yes", "no", "yes"))]


def test_answers_to_questions_that_are_not_sent_are_received_too(serve: Serve, open_judge: OpenJudge) -> None:
    received: list[tuple[int, ChoiceAnswer]] = []
    questions = [QUESTIONS[0], ask_verdict("c", "word " * 1200)]
    open_judge(serve(window=1000)).choose(questions, lambda *call: received.append(call))
    statuses = {position: answer.status for position, answer in received}
    assert statuses == {0: AnswerStatus.ANSWERED, 1: AnswerStatus.FAILED}


def test_answers_before_the_loss_of_the_server_are_received(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve()
    judge = open_judge(server, concurrency=2, unavailable_timeout=0.1)
    received: Counter[int] = Counter()
    half = threading.Event()

    def on_answer(position: int, answer: ChoiceAnswer) -> None:
        assert answer.label == "yes"
        received[position] += 1
        if received.total() == 20:
            half.set()

    def stop() -> None:
        half.wait(DEAD_SECONDS)
        server.stop()

    stopping = threading.Thread(target=stop)
    server.delay = 0.01
    stopping.start()
    with pytest.raises(JudgeError, match=r"the judge is lost: .* \((\d+) of 40 requests were answered\)") as raised:
        judge.choose(QUESTIONS, on_answer)
    stopping.join()
    assert set(received.values()) == {1}
    assert 20 <= len(received) < 40
    assert f"({len(received)} of 40" in str(raised.value)


def test_an_exception_of_the_callback_ends_the_batch(serve: Serve, open_judge: OpenJudge) -> None:
    def on_answer(_position: int, _answer: ChoiceAnswer) -> None:
        raise OSError("no space left")

    judge = open_judge(serve(), concurrency=2)
    with pytest.raises(OSError, match="no space left"):
        judge.choose(QUESTIONS, on_answer)
    assert judge.choose(QUESTIONS[:1])[0].label == "yes"


def test_a_cancelled_run_stops_waiting_and_has_received_earlier_answers(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve()
    judge = open_judge(server, concurrency=4)
    received: dict[int, ChoiceAnswer] = {}
    some = threading.Event()
    raised: list[BaseException] = []

    def on_answer(position: int, answer: ChoiceAnswer) -> None:
        received[position] = answer
        if len(received) == 8:
            server.delay = 3600.0
            some.set()

    def stage() -> None:
        try:
            judge.choose(QUESTIONS, on_answer)
        except CancelledError as error:
            raised.append(error)

    with suppress(KeyboardInterrupt), cancellable():
        stage_thread = threading.Thread(target=copy_context().run, args=(stage,))
        stage_thread.start()
        assert some.wait(DEAD_SECONDS)
        raise KeyboardInterrupt
    stage_thread.join(DEAD_SECONDS)
    assert not stage_thread.is_alive()
    assert len(raised) == 1
    assert 8 <= len(received) < len(QUESTIONS)
