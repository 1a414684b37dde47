"""A judge or embedder that nobody refers to any more closes its connection, with the thread that serves it."""

import gc
import threading
from collections.abc import Callable

import pytest

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
