"""Every kind of judge question, sent to a real vLLM by the server judge."""

import asyncio
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import httpx
import pytest

from metric_core.judge_questions import ChoiceQuestion, GenerateQuestion, JudgeQuestion
from metric_core.records import AnswerStatus
from tasks.judges.openai.openai_judge import OpenAIJudge
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.runtime.cancellation import Cancellation, cancellable
from tasks.runtime.usage import Usage
from tests.metric_core.prompts.questions import QUESTIONS
from tests.vllm.conftest import MODEL


def questions_of_type(kind: type[JudgeQuestion]) -> list[JudgeQuestion]:
    return [question for question in QUESTIONS.values() if isinstance(question, kind)]


@pytest.fixture(scope="module")
def judge(vllm_url: str) -> Iterator[OpenAIJudge]:
    judge = OpenAIJudge(ServerJudgeOptions(urls=(vllm_url,), max_output_tokens=128, timeout=600))
    yield judge
    judge.close()


def check_cost(usage: Usage) -> None:
    assert usage.prompt_tokens > 100
    assert usage.output_tokens > 0
    assert usage.seconds > 0


def test_features_of_the_server_are_detected(judge: OpenAIJudge) -> None:
    features = judge.features
    assert features.model == judge.identity.model == MODEL
    assert features.window == 2048
    assert features.choice == "structured_outputs"
    assert features.json == "response_format"
    assert features.top_logprobs >= 20
    assert features.several
    assert features.seed
    assert features.tokenizer
    assert features.cached_tokens


@pytest.mark.parametrize("question", questions_of_type(ChoiceQuestion), ids=lambda question: question.kind)
def test_a_choice_has_a_label_and_probabilities(judge: OpenAIJudge, question: ChoiceQuestion) -> None:
    [answer] = judge.choose([question])

    assert answer.status is AnswerStatus.ANSWERED, answer.reason
    assert len(answer.votes) == question.votes
    assert set(answer.votes) <= set(question.labels)
    assert answer.probabilities is not None
    assert answer.probabilities.keys() == set(question.labels)
    assert sum(answer.probabilities.values()) == pytest.approx(1)
    assert all(0 <= probability <= 1 for probability in answer.probabilities.values())
    check_cost(answer.usage)


@pytest.mark.parametrize("question", questions_of_type(GenerateQuestion), ids=lambda question: question.kind)
def test_reply_fits_its_schema_or_has_a_reason(judge: OpenAIJudge, question: GenerateQuestion) -> None:
    [answer] = judge.generate([question])

    check_cost(answer.usage)
    if answer.status is AnswerStatus.ANSWERED:
        assert answer.value.keys() == question.schema["properties"].keys()
        assert answer.reason is None
    else:
        assert answer.status is AnswerStatus.FAILED
        assert answer.value is None
        assert answer.reason


def test_the_server_stops_writing_for_a_cancelled_run(judge: OpenAIJudge, vllm_url: str) -> None:
    def metric(name: str) -> float:
        text = httpx.get(f"{vllm_url.removesuffix('/v1')}/metrics").text
        found = (line for line in text.splitlines() if re.match(rf"vllm:{name}[{{ ]", line))
        return sum(float(line.rpartition(" ")[2]) for line in found)

    def wait_for(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 120
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.1)

    runs: list[Cancellation] = []
    questions = [each for each in QUESTIONS.values() if isinstance(each, GenerateQuestion)]
    before = metric("request_success_total")

    def ask() -> None:
        with cancellable() as run, suppress(asyncio.CancelledError):
            runs.append(run)
            judge.generate(questions)

    asking = threading.Thread(target=ask)
    asking.start()
    wait_for(lambda: metric("num_requests_running") > 0)
    runs[0].cancel()
    wait_for(lambda: metric("num_requests_running") + metric("num_requests_waiting") == 0)
    # vLLM counts no aborted requests: those that neither run nor have finished are aborted.
    assert metric("request_success_total") - before < len(questions)
    written = metric("generation_tokens_total")
    time.sleep(1)
    assert metric("generation_tokens_total") == written
    asking.join(60)
    assert not asking.is_alive()


def test_many_questions_are_answered_in_their_order(judge: OpenAIJudge) -> None:
    questions = [question for question in QUESTIONS.values() if isinstance(question, ChoiceQuestion)] * 3
    answers = judge.choose(questions)
    for question, answer in zip(questions, answers, strict=True):
        assert set(answer.votes) <= set(question.labels)
    assert sum(answer.usage.cached_tokens for answer in answers) > 0
