"""Tests of failing servers: retries, failed answers and errors."""

import gzip
import json
import logging
import threading
from collections import Counter
from typing import Any

import pytest

from metric_core.errors import ConfigError, JudgeError
from metric_core.prompts.judge_questions import ask_claims, ask_verdict
from metric_core.records import AnswerStatus
from tasks.models.clients.replica_pool import PROBES
from tasks.models.judges.openai.openai_judge import OpenAIJudge
from tasks.options.judge_server_options import ServerJudgeOptions
from tests.tasks.models.judges.openai.conftest import OpenJudge, Serve
from tests.tasks.models.judges.openai.fake_server import Fault
from tests.tasks.models.judges.openai.socks_proxy import SocksProxy
from tests.waiting import DEAD_SECONDS, wait_until

KEY = "sk-very-secret-4711"
QUESTIONS = [ask_verdict(f"claim {i}", f"context {i % 10}") for i in range(40)]


def _is_third(body: dict[str, Any]) -> bool:
    return "\nclaim 3\n" in body["messages"][-1]["content"]


class Every:
    """A fault at every n-th request; the others are answered."""

    def __init__(self, nth: int, fault: Fault) -> None:
        self.nth, self.fault, self.count = nth, fault, 0

    def __call__(self, _body: dict[str, Any]) -> Fault | None:
        self.count += 1
        return self.fault if self.count % self.nth == 0 else None


@pytest.mark.parametrize(
    "fault",
    [
        Fault(429, headers={"Retry-After": "0"}),
        Fault(429),
        Fault(408),
        Fault(500),
        Fault(503, "<html>busy</html>"),
        Fault(200, "<html>welcome</html>"),
        Fault(hang_up=True),
    ],
    ids=["429 with Retry-After", "429", "408", "500", "503", "no JSON", "lost connection"],
)
def test_transient_faults_are_retried(serve: Serve, open_judge: OpenJudge, fault: Fault) -> None:
    server = serve(say=Every(5, fault))
    replies = open_judge(server, concurrency=4).choose(QUESTIONS)
    assert {answer.label for answer in replies} == {"yes"}
    asked = Counter(body["messages"][-1]["content"] for body in server.asked)
    assert len(asked) == len(QUESTIONS)
    assert sum(asked.values()) > len(QUESTIONS)
    assert sum(answer.usage.requests for answer in replies) == sum(asked.values())


def test_retry_after_is_respected(serve: Serve, open_judge: OpenJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float | None] = []

    def remember(_attempt: int, retry_after: float | None) -> float:
        pauses.append(retry_after)
        return 0.0

    monkeypatch.setattr("tasks.models.clients.replica_pool.backoff_seconds", remember)
    server = serve(say=Every(4, Fault(429, headers={"Retry-After": "7"})))
    open_judge(server).choose(QUESTIONS[:8])
    assert set(pauses) == {7.0}


def test_a_timeout_is_retried_once(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve(say=lambda body: Fault(silence=True) if _is_third(body) else None)
    replies = open_judge(server, timeout=0.3, concurrency=2).choose(QUESTIONS[:6])
    assert [answer.status for answer in replies].count(AnswerStatus.FAILED) == 1
    assert replies[3].reason == "the judge server gave an error: no reply within the timeout"
    assert replies[3].usage.requests == 2
    assert sum(_is_third(body) for body in server.asked) == 2


def test_one_question_that_never_succeeds_fails_alone(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve(say=lambda body: Fault(500) if _is_third(body) else None)
    replies = open_judge(server, max_retries=2, concurrency=1).choose(QUESTIONS[:8])
    assert [answer.status for answer in replies].count(AnswerStatus.FAILED) == 1
    assert replies[3].reason == "the judge server gave an error (500): scripted fault"
    assert sum(_is_third(body) for body in server.asked) == 3


def test_a_server_that_answers_nothing_but_errors_ends_the_run(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve()
    judge = open_judge(server, max_retries=2)
    server.out_of_order = True
    with pytest.raises(JudgeError, match=r"gave no answer in 3 tries. Last: 500: out of order \(0 of"):
        judge.choose(QUESTIONS)


@pytest.mark.parametrize(("status", "message"), [(401, "refuses the key"), (404, "no such address or model")])
def test_a_rejected_key_or_model_ends_the_run_at_once(
    serve: Serve, open_judge: OpenJudge, status: int, message: str
) -> None:
    server = serve(say=lambda _: Fault(status))
    judge = open_judge(server, concurrency=2)
    with pytest.raises(JudgeError, match=message):
        judge.choose(QUESTIONS)
    assert len(server.asked) <= 4


def test_a_redirect_is_not_followed(serve: Serve, open_judge: OpenJudge) -> None:
    other = serve()
    server = serve(say=lambda _: Fault(307, headers={"Location": f"{other.url}/chat/completions"}))
    judge = open_judge(server)
    with pytest.raises(JudgeError, match="answers 307"):
        judge.choose(QUESTIONS[:2])
    assert other.bodies == []


def test_a_dead_replica_leaves_its_questions_to_the_others(
    serve: Serve, open_judge: OpenJudge, caplog: pytest.LogCaptureFixture
) -> None:
    dying, living = serve(), serve()
    judge = open_judge(dying, living, concurrency=2)
    assert {answer.label for answer in judge.choose(QUESTIONS)} == {"yes"}
    assert min(len(dying.asked), len(living.asked)) > 0
    dying.stop()
    with caplog.at_level(logging.WARNING):
        assert {answer.label for answer in judge.choose(QUESTIONS)} == {"yes"}
    assert f"{dying.url} is down" in caplog.text


def test_a_replica_that_dies_during_a_run_and_returns(serve: Serve, open_judge: OpenJudge) -> None:
    dying, living = serve(), serve()
    judge = open_judge(dying, living, concurrency=2)
    enough = threading.Event()

    def count(_body: dict[str, Any]) -> None:
        if len(dying.asked) >= 5:
            enough.set()

    dying.say = count
    dying.delay = living.delay = 0.01
    results: list[Any] = []
    run = threading.Thread(target=lambda: results.extend(judge.choose(QUESTIONS)))
    run.start()
    assert enough.wait(DEAD_SECONDS)
    dying.stop()
    run.join(DEAD_SECONDS)
    assert [answer.label for answer in results] == ["yes"] * len(QUESTIONS)
    before = len(dying.asked)
    dying.start()

    def is_asked_again() -> bool:
        assert {answer.label for answer in judge.choose(QUESTIONS)} == {"yes"}
        return len(dying.asked) > before

    wait_until(is_asked_again, "a question to the server that is back")


def test_the_only_server_is_restarted_during_a_run(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve()
    judge = open_judge(server, concurrency=2)
    enough = threading.Event()
    server.say = lambda _: enough.set() if len(server.asked) >= 5 else None
    server.delay = 0.01
    results: list[Any] = []
    run = threading.Thread(target=lambda: results.extend(judge.choose(QUESTIONS)))
    run.start()
    assert enough.wait(DEAD_SECONDS)
    server.stop()
    assert results == []
    server.start()
    run.join(DEAD_SECONDS)
    assert [answer.label for answer in results] == ["yes"] * len(QUESTIONS)


def test_all_servers_dead(serve: Serve, open_judge: OpenJudge) -> None:
    one, other = serve(), serve()
    judge = open_judge(one, other, unavailable_timeout=0.2)
    one.stop()
    other.stop()
    for _ in range(2):
        with pytest.raises(
            JudgeError, match=r"cannot be reached.*\(0 of 40 requests were answered\). Check the server"
        ):
            judge.choose(QUESTIONS)
    other.start()
    assert {answer.label for answer in _choose_when_back(judge)} == {"yes"}


def _choose_when_back(judge: OpenAIJudge) -> list[Any]:
    """Retry until the server answers, which may be noticed only after another call has failed."""
    for _ in range(int(PROBES.longest / 0.05)):
        try:
            return judge.choose(QUESTIONS[:3])
        except JudgeError:
            continue
    raise AssertionError("never back")


def test_prefixes_stay_with_their_replica(serve: Serve, open_judge: OpenJudge) -> None:
    servers = [serve(), serve(), serve()]
    judge = open_judge(*servers)
    judge.choose(QUESTIONS)
    judge.choose(QUESTIONS)
    homes: dict[str, set[int]] = {}
    for i, server in enumerate(servers):
        for body in server.asked:
            context = body["messages"][-1]["content"].split("</quoted>")[0]
            homes.setdefault(context, set()).add(i)
    assert len(homes) == 10
    assert all(len(at) == 1 for at in homes.values())


def test_an_idle_replica_helps_a_full_one(serve: Serve, open_judge: OpenJudge) -> None:
    servers = [serve(), serve()]
    for server in servers:
        server.delay = 0.005
    one_prefix = [ask_verdict(f"claim {i}", "context") for i in range(40)]
    open_judge(*servers, concurrency=2).choose(one_prefix)
    assert min(len(server.asked) for server in servers) >= 5


def test_questions_from_several_threads_share_the_connection(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve()
    server.delay = 0.002
    judge = open_judge(server, concurrency=6)
    labels: list[str | None] = []
    threads = [
        threading.Thread(target=lambda: labels.extend(answer.label for answer in judge.choose(QUESTIONS)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEAD_SECONDS)
    assert labels == ["yes"] * 160
    assert server.most_in_flight == 6


def test_the_key_is_sent_but_never_shown(
    serve: Serve, open_judge: OpenJudge, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    server = serve(key=KEY, say=lambda _: Fault(400, {"message": f"your key {KEY} is fine, your prompt is not"}))
    with caplog.at_level(logging.DEBUG):
        judge = open_judge(server, api_key_env="JUDGE_KEY")
        (answer,) = judge.choose(QUESTIONS[:1])
    assert server.authorizations == {f"Bearer {KEY}"}
    assert answer.reason == "the judge server gave an error (400): your key [key] is fine, your prompt is not"
    shown = [repr(judge), repr(judge.__dict__), repr(judge.identity), repr(judge.features), caplog.text]
    assert not any(KEY in text for text in shown)


def test_a_wrong_key(serve: Serve, open_judge: OpenJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", "wrong")
    with pytest.raises(JudgeError, match=r"refuses the key \(401\)") as caught:
        open_judge(serve(key=KEY), api_key_env="JUDGE_KEY")
    assert "wrong" not in str(caught.value)


def test_a_key_that_is_not_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    with pytest.raises(ConfigError, match="the environment has no such variable"):
        OpenAIJudge(ServerJudgeOptions(urls=("http://127.0.0.1:9",), api_key_env="JUDGE_KEY"))


def test_a_short_key_is_not_redacted(serve: Serve, open_judge: OpenJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", "x")
    server = serve(key="x", say=lambda _: {"content": '{"claims": ["The tax is six."]}'})
    (answer,) = open_judge(server, api_key_env="JUDGE_KEY").generate([ask_claims("It rains.", None)])
    assert answer.value == {"claims": ["The tax is six."]}


def test_a_key_that_is_not_valid_in_a_header(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", f"{KEY}\nsecond line")
    with pytest.raises(ConfigError, match="JUDGE_KEY names holds a line break") as caught:
        OpenAIJudge(ServerJudgeOptions(urls=("http://127.0.0.1:9",), api_key="env:JUDGE_KEY"))
    assert KEY not in str(caught.value)


def test_a_closed_judge_raises_an_error(serve: Serve, open_judge: OpenJudge) -> None:
    judge = open_judge(serve())
    judge.close()
    judge.close()
    with pytest.raises(RuntimeError, match="closed"):
        judge.generate([ask_claims("It rains.", None)])


@pytest.mark.parametrize("is_compressed", [False, True])
def test_an_oversized_reply_fails_its_question_and_is_not_asked_again(
    serve: Serve, open_judge: OpenJudge, is_compressed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ServerJudgeOptions, "max_reply_bytes", 100_000)
    text = json.dumps({"choices": [], "padding": "x" * 3_000_000})
    body = gzip.compress(text.encode()) if is_compressed else text
    headers = {"Content-Encoding": "gzip"} if is_compressed else {}
    server = serve(say=lambda asked: Fault(200, body, headers=headers) if _is_third(asked) else None)
    judge = open_judge(server, concurrency=4)
    answers = judge.choose(QUESTIONS)
    failed = [answer for answer in answers if answer.status is AnswerStatus.FAILED]
    assert [answer.reason for answer in failed] == ["reply larger than 100,000 bytes"]
    assert failed == [answers[3]]
    assert len(server.asked) == len(QUESTIONS)


def test_a_judge_behind_a_socks_proxy_is_asked_through_it(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve()
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with SocksProxy() as proxy:
        monkeypatch.setenv("ALL_PROXY", f"socks5h://127.0.0.1:{proxy.port}")
        judge = OpenAIJudge(ServerJudgeOptions(urls=(f"http://judge.example:{server.port}/v1",)))
        try:
            assert judge.choose(QUESTIONS[:1])[0].label == "yes"
        finally:
            judge.close()
        assert proxy.hosts == {"judge.example"}


def test_a_local_judge_is_not_asked_through_a_proxy(
    serve: Serve, open_judge: OpenJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody listens there
    assert open_judge(serve()).choose(QUESTIONS[:1])[0].label == "yes"
