"""Every kind of judge question, sent to a real vLLM by the server judge."""

import asyncio
import re
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest

from metric_core.prompts.judge_questions import ChoiceQuestion, GenerateQuestion, JudgeQuestion, ask_claims, ask_verdict
from metric_core.records import AnswerStatus
from tasks.models.judges.openai import grouping
from tasks.models.judges.openai.context_window import TOO_LONG
from tasks.models.judges.openai.openai_judge import OpenAIJudge
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.runtime.cancellation import Cancellation, cancellable
from tasks.runtime.usage import Usage
from tests.metric_core.prompts.questions import QUESTIONS
from tests.vllm.conftest import MODEL
from tests.waiting import DEAD_SECONDS, wait_until


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
    assert features.batches


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

    runs: list[Cancellation] = []
    questions = [each for each in QUESTIONS.values() if isinstance(each, GenerateQuestion)]
    before = metric("request_success_total")

    def ask() -> None:
        with cancellable() as run, suppress(asyncio.CancelledError):
            runs.append(run)
            judge.generate(questions)

    asking = threading.Thread(target=ask)
    asking.start()
    wait_until(lambda: metric("num_requests_running") > 0)
    runs[0].cancel()
    wait_until(lambda: metric("num_requests_running") + metric("num_requests_waiting") == 0)
    # vLLM counts no aborted requests: those that neither run nor have finished are aborted.
    assert metric("request_success_total") - before < len(questions)
    written = metric("generation_tokens_total")
    time.sleep(1)
    assert metric("generation_tokens_total") == written
    asking.join(DEAD_SECONDS)
    assert not asking.is_alive()


def test_many_questions_are_answered_in_their_order(judge: OpenAIJudge) -> None:
    questions = [question for question in QUESTIONS.values() if isinstance(question, ChoiceQuestion)] * 3
    answers = judge.choose(questions)
    for question, answer in zip(questions, answers, strict=True):
        assert set(answer.votes) <= set(question.labels)
    assert judge.features.batches
    usage = sum((answer.usage for answer in answers), Usage())
    assert usage.unreported_tokens > 0
    assert usage.requests < len(questions)


def test_several_conversations_in_a_request_are_answered_as_single_ones(
    vllm_url: str, judge: OpenAIJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    passage = "The Orla sails at noon and at six. " * 20
    questions = [ask_verdict(f"The Orla sails {i} times a day.", passage) for i in range(40)]
    texts = [ask_claims(f"The Orla sails {i} times a day, and the ferry is late.", None) for i in range(8)]
    monkeypatch.setattr(grouping, "LABELS_PER_REQUEST", 1)
    single = OpenAIJudge(ServerJudgeOptions(urls=(vllm_url,), max_output_tokens=128, timeout=600))
    try:
        alone, alone_texts = single.choose(questions), single.generate(texts)
    finally:
        single.close()
    together, together_texts = judge.choose(questions), judge.generate(texts)
    assert sum(answer.usage.requests for answer in alone) == len(questions)
    assert sum(answer.usage.requests for answer in together) == 3
    for one, other in zip(together, alone, strict=True):
        assert one.votes == other.votes
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-3)
    assert [answer.value for answer in together_texts] == [answer.value for answer in alone_texts]
    for kind in ("prompt_tokens", "output_tokens"):
        for one_way, other_way in ((together, alone), (together_texts, alone_texts)):
            counts = [sum(getattr(answer.usage, kind) for answer in answers) for answers in (one_way, other_way)]
            assert counts[0] == counts[1]


def test_a_prompt_that_is_too_long_does_not_fail_the_others(judge: OpenAIJudge) -> None:
    long_text = " ".join(f"{i * 7919 % 100003:x}" for i in range(1100))  # more tokens than the estimate allows
    questions = [ask_verdict(f"claim {i}", long_text if i == 5 else "The Orla sails at noon.") for i in range(12)]
    answers = judge.choose(questions)
    assert [i for i, answer in enumerate(answers) if answer.status is not AnswerStatus.ANSWERED] == [5]
    assert answers[5].reason == TOO_LONG
