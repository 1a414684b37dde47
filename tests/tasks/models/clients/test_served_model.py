"""A judge or embedder that nobody refers to any more closes its connection, with the thread that serves it."""

import gc
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing

import pytest

from metric_core.errors import JudgeError
from metric_core.prompts.judge_questions import ask_verdict
from metric_core.records import AnswerStatus
from tasks.models.clients.observed_model import describe_card
from tasks.models.embedders.openai_embedder import OpenAIEmbedder
from tasks.models.judges.openai.openai_judge import OpenAIJudge
from tasks.models.judges.verifiers.open_served import open_served_verifier
from tasks.options.embedding_server_options import ServerEmbedderOptions
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.options.load_profile import load_profile
from tests.tasks.models.embedders.embedding_server import EmbeddingServer
from tests.tasks.models.judges.openai.fake_server import FULL, FakeServer
from tests.tasks.models.judges.verifiers.conftest import SPLITTER
from tests.tasks.models.judges.verifiers.verifier_server import VerifierServer
from tests.waiting import wait_until

CARD = {"owned_by": "llamacpp", "meta": {"n_ctx": 4096, "n_params": 5}}


def open_judge() -> object:
    with FakeServer(FULL) as server:
        return OpenAIJudge(ServerJudgeOptions(urls=(server.url,)))


def open_verifier() -> object:
    profile = load_profile("minicheck-7b")
    with VerifierServer(profile) as server:
        return open_served_verifier(profile, ServerJudgeOptions(urls=(server.url,)), SPLITTER)


def open_embedder() -> object:
    server = EmbeddingServer()
    try:
        return OpenAIEmbedder(ServerEmbedderOptions(urls=(server.url,)))
    finally:
        server.stop()


@pytest.mark.parametrize("open_model", [open_judge, open_verifier, open_embedder])
def test_a_model_without_a_user_closes_its_connection(open_model: Callable[[], object]) -> None:
    before = set(threading.enumerate())
    opened = open_model()
    threads = {thread for thread in set(threading.enumerate()) - before if thread.name == "judge-server"}
    assert threads
    del opened
    gc.collect()
    wait_until(lambda: not any(thread.is_alive() for thread in threads))


@pytest.mark.parametrize(("slots", "most"), [(1, 1), (3, 3), (None, 1)])
def test_llama_cpp_gets_as_many_requests_at_once_as_it_has_slots(slots: int | None, most: int) -> None:
    with FakeServer(FULL) as server:
        server.card, server.slots, server.delay = CARD, slots, 0.01
        with closing(OpenAIJudge(ServerJudgeOptions(urls=(server.url,), concurrency=32))) as judge:
            judge.choose(
                [ask_verdict(f"It takes {minutes} minutes.", "The ferry needs 40 minutes.") for minutes in range(8)]
            )
        assert server.most_in_flight == most
        assert (judge.features.software, judge.features.window) == ("llama.cpp", 4096)


def test_llama_cpp_may_take_long_unless_the_options_say_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.models.clients.connection.REPLY_SECONDS", 0.4)
    question = ask_verdict("It takes 40 minutes.", "It takes long.")
    with FakeServer(FULL) as server, ExitStack() as stack:
        server.card, server.slots = CARD, 1
        patient = stack.enter_context(closing(OpenAIJudge(ServerJudgeOptions(urls=(server.url,)))))
        hasty = ServerJudgeOptions(urls=(server.url,), timeout=0.4, unavailable_timeout=0)
        impatient = stack.enter_context(closing(OpenAIJudge(hasty)))
        server.delay = 0.8
        assert patient.choose([question])[0].status is AnswerStatus.ANSWERED
        with pytest.raises(JudgeError, match="no reply within the timeout"):
            impatient.choose([question])


def test_the_window_of_a_start_is_not_part_of_the_model() -> None:
    assert describe_card({"id": "qwen", **CARD}) == ({"meta": {"n_params": 5}}, 4096)
