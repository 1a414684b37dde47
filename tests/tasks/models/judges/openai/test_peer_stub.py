"""Tests of the server judge with the stub judge of the peer benchmark, a separate process, if available."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest

from benchmarks.modelled_gpu import Gpu
from metric_core.prompts.judge_questions import ask_claims, ask_questions, ask_verdict
from metric_core.records import AnswerStatus
from tasks.models.judges.openai import reply_parsing
from tasks.models.judges.openai.openai_judge import OpenAIJudge
from tasks.models.judges.openai.server_features import ChoiceConstraint, JsonConstraint
from tasks.options.judge_server_options import ServerJudgeOptions
from tests.tasks.models.judges.openai.fake_server import free_port
from tests.waiting import DEAD_SECONDS, wait_until

ROOT = Path(__file__).parents[5]
STUB = ROOT.parent / "shared" / "peer" / "judge_stub.py"

pytestmark = pytest.mark.skipif(not STUB.is_file(), reason="the stub judge of the peer benchmark is not available")

Start = Callable[..., subprocess.Popen[bytes]]
VERDICTS = [ask_verdict(f"claim {i}", f"context {i % 7}") for i in range(50)]


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts a stub on a port and waits until it serves; kill the stubs at the end."""
    running: list[subprocess.Popen[bytes]] = []

    def start_one(port: int, *options: str, program: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        given = program or (str(STUB), "--latency-ms", "2", "--max-seconds", "1800")
        command = [sys.executable, *given, "--port", str(port), *options]
        running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT))

        def answers() -> bool:
            with suppress(OSError):
                urlopen(f"http://127.0.0.1:{port}/health", timeout=10).close()
                return True
            return False

        wait_until(answers, "the stub judge")
        return running[-1]

    yield start_one
    for process in running:
        process.kill()
        process.wait()


def _judge(port: int, **options: object) -> OpenAIJudge:
    return OpenAIJudge(ServerJudgeOptions.model_validate({"urls": (f"http://127.0.0.1:{port}",), **options}))


def test_all_kinds_of_questions(start: Start) -> None:
    port = free_port()
    start(port)
    judge = _judge(port)
    assert judge.features.choice is ChoiceConstraint.STRUCTURED_OUTPUTS
    assert judge.features.json is JsonConstraint.RESPONSE_FORMAT
    for answer in judge.choose(VERDICTS):
        assert answer.probabilities is not None
        assert answer.label == max(answer.probabilities, key=lambda label: (answer.probabilities or {})[label])
    claims, questions = judge.generate([ask_claims("It rains.", None), ask_questions("It rains.", 3)])
    assert len(claims.value["claims"]) == 4
    assert len(questions.value["questions"]) == 3
    judge.close()


def test_faults(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.models.clients.backoff.FIRST", 0.01)
    port = free_port()
    start(port, "--fail-every", "7", "--fail-status", "500", "--bad-json-every", "5")
    judge = _judge(port)
    assert {answer.status for answer in judge.choose(VERDICTS)} == {AnswerStatus.ANSWERED}
    replies = judge.generate([ask_claims(f"It rains {i}.", None) for i in range(50)])
    assert {answer.reason for answer in replies} == {None, reply_parsing.NO_JSON}
    judge.close()


def test_a_killed_and_restarted_process(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.models.clients.backoff.FIRST", 0.01)
    port = free_port()
    process = start(port, "--latency-ms", "20")
    judge = _judge(port, concurrency=2)
    results: list[str | None] = []
    run = threading.Thread(target=lambda: results.extend(answer.label for answer in judge.choose(VERDICTS)))
    run.start()
    time.sleep(0.1)
    process.kill()
    process.wait()
    start(port)
    run.join(DEAD_SECONDS)
    assert len(results) == len(VERDICTS)
    assert None not in results
    judge.close()


def test_the_lean_model_of_a_gpu_replies_and_counts_as_the_stub(start: Start) -> None:
    questions = [ask_verdict(f"claim {i % 9}", f"context {i % 7} " + "word " * 90) for i in range(60)]
    names = ("chat_requests", "est_prompt_tokens", "est_cached_tokens", "est_completion_tokens")
    found = []
    for program in ([str(STUB), "--gpu", "--max-seconds", "1800"], ["-m", "benchmarks.modelled_gpu"]):
        port = free_port()
        start(port, "--step-ms", "1", "--prefill-tps", "1000000", program=program)
        url = f"http://127.0.0.1:{port}"
        judge = OpenAIJudge(ServerJudgeOptions(urls=(f"{url}/v1",), concurrency=1))
        before = json.loads(urlopen(f"{url}/stats").read())
        labels, (claims,) = judge.choose(questions), judge.generate([ask_claims("It rains. It pours.", "How is it?")])
        after = json.loads(urlopen(f"{url}/stats").read())
        judge.close()
        contents = [(label.status, label.reply, label.probabilities) for label in labels]
        contents.append((claims.status, claims.reply, None))
        found.append((contents, {name: after[name] - before[name] for name in names}))
    (stub, counted), (lean, counted_by_lean) = found
    assert lean == stub
    assert counted_by_lean == counted
    assert counted["est_cached_tokens"] > 0


def test_the_lean_model_of_a_gpu_takes_the_time_of_its_tokens() -> None:
    gpu = Gpu(prefill_tps=100, step_s=0.5, max_num_seqs=2, cache_tokens=4000)
    first, second = "a" * 640, "b" * 640  # 160 tokens each
    assert gpu.serve(first, 2, now=0.0) == 1.6 + 1.0
    assert gpu.serve(second, 4, now=0.0) == 3.2 + 2.0  # its prefill waits for the first
    assert gpu.serve(first, 2, now=0.0) == pytest.approx(3.2 + 0.01 + 1.0)  # cached, and seated at 2.6
    assert gpu.serve(first + "c" * 64, 2, now=9.0) == pytest.approx(9.0 + 0.16 + 1.0)
    assert gpu.cached_tokens == 320
    assert gpu.idle_s == pytest.approx(9.0 - 3.21)
