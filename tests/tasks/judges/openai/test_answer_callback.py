"""Answers are handed over as soon as they are there, each once, and before a lost server is reported."""

import threading
from asyncio import CancelledError
from collections import Counter
from contextlib import suppress
from contextvars import copy_context
from typing import Any

import pytest

from metric_core.errors import JudgeError
from metric_core.judge_questions import ChoiceQuestion, QuestionKind, ask_claims, ask_verdict
from metric_core.records import AnswerStatus
from tasks.judges.protocol import ChoiceAnswer, GenerateAnswer
from tasks.runtime.cancellation import cancellable
from tests.tasks.judges.openai.conftest import OpenJudge, Serve
from tests.tasks.judges.openai.fake_server import FULL, Fault

QUESTIONS = [ask_verdict(f"claim {i}", f"context {i % 10}") for i in range(40)]
ASPECT = ChoiceQuestion(QuestionKind.ASPECT, {"response": "r"}, ("yes", "no"), {"definition": "Is it kind?"}, votes=3)


def _user(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"])


def test_each_answer_is_kept_once_and_is_the_one_returned(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve(say=lambda body: Fault(400) if "\nclaim 3\n" in _user(body) else None)
    kept: list[tuple[int, ChoiceAnswer]] = []
    answers = open_judge(server, concurrency=8).choose(QUESTIONS, lambda *one: kept.append(one))
    assert sorted(position for position, _ in kept) == list(range(40))
    assert all(answer is answers[position] for position, answer in kept)
    assert [position for position, answer in kept if answer.status is AnswerStatus.FAILED] == [3]


def test_answers_are_kept_in_the_order_in_which_they_come(serve: Serve, open_judge: OpenJudge) -> None:
    kept: list[int] = []
    open_judge(serve(), concurrency=1).choose(QUESTIONS, lambda position, _: kept.append(position))
    assert kept == sorted(range(40), key=lambda i: f"context {i % 10}")


def test_generated_texts_are_kept(serve: Serve, open_judge: OpenJudge) -> None:
    kept: list[tuple[int, GenerateAnswer]] = []
    claims = [ask_claims(f"It rains {i} hours.", None) for i in range(5)]
    answers = open_judge(serve()).generate(claims, lambda *one: kept.append(one))
    assert dict(kept) == dict(enumerate(answers))


def test_votes_are_kept_when_the_last_is_in(serve: Serve, open_judge: OpenJudge) -> None:
    kept: list[tuple[int, ChoiceAnswer]] = []
    server = serve(FULL - {"n"}, say=lambda body: {"content": "no" if body["seed"] == 1 else "yes"})
    open_judge(server).choose([ASPECT], lambda *one: kept.append(one))
    assert [(position, answer.votes) for position, answer in kept] == [(0, ("yes", "no", "yes"))]


def test_what_is_not_asked_is_kept_too(serve: Serve, open_judge: OpenJudge) -> None:
    kept: list[tuple[int, ChoiceAnswer]] = []
    questions = [QUESTIONS[0], ask_verdict("c", "word " * 1200)]
    open_judge(serve(window=1000)).choose(questions, lambda *one: kept.append(one))
    statuses = {position: answer.status for position, answer in kept}
    assert statuses == {0: AnswerStatus.ANSWERED, 1: AnswerStatus.FAILED}


def test_what_came_before_the_server_was_lost_is_kept(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve()
    judge = open_judge(server, concurrency=2, patience=0.1)
    kept: Counter[int] = Counter()
    half = threading.Event()

    def on_answer(position: int, answer: ChoiceAnswer) -> None:
        assert answer.label == "yes"
        kept[position] += 1
        if kept.total() == 20:
            half.set()

    def stop() -> None:
        half.wait(30)
        server.stop()

    stopping = threading.Thread(target=stop)
    server.delay = 0.01
    stopping.start()
    with pytest.raises(JudgeError, match=r"the judge is lost: .* \((\d+) of 40 requests were answered\)") as raised:
        judge.choose(QUESTIONS, on_answer)
    stopping.join()
    assert set(kept.values()) == {1}
    assert 20 <= len(kept) < 40
    assert f"({len(kept)} of 40" in str(raised.value)


def test_an_answer_that_can_not_be_kept_ends_the_batch(serve: Serve, open_judge: OpenJudge) -> None:
    def on_answer(_position: int, _answer: ChoiceAnswer) -> None:
        raise OSError("no space left")

    judge = open_judge(serve(), concurrency=2)
    with pytest.raises(OSError, match="no space left"):
        judge.choose(QUESTIONS, on_answer)
    assert judge.choose(QUESTIONS[:1])[0].label == "yes"


def test_an_interrupted_run_waits_no_longer_and_has_kept_what_came(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve()
    judge = open_judge(server, concurrency=4)
    kept: dict[int, ChoiceAnswer] = {}
    some = threading.Event()
    raised: list[BaseException] = []

    def on_answer(position: int, answer: ChoiceAnswer) -> None:
        kept[position] = answer
        if len(kept) == 8:
            server.delay = 3600.0
            some.set()

    def stage() -> None:
        try:
            judge.choose(QUESTIONS, on_answer)
        except CancelledError as error:
            raised.append(error)

    with suppress(KeyboardInterrupt), cancellable():
        of_the_run = threading.Thread(target=copy_context().run, args=(stage,))
        of_the_run.start()
        assert some.wait(30)
        raise KeyboardInterrupt
    of_the_run.join(30)
    assert not of_the_run.is_alive()
    assert len(raised) == 1
    assert 8 <= len(kept) < len(QUESTIONS)
