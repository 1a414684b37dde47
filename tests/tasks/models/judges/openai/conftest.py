"""Fixtures of servers and judges, which are always stopped and closed."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tasks.models.judges.openai.openai_judge import OpenAIJudge
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.runtime.retry import Backoff
from tests.tasks.models.judges.openai.fake_server import FakeServer

OpenJudge = Callable[..., OpenAIJudge]
Serve = Callable[..., FakeServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Return a function that starts a fake server."""
    with ExitStack() as stack:
        yield lambda *args, **options: stack.enter_context(FakeServer(*args, **options))


@pytest.fixture
def open_judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenJudge]:
    """Return a function that opens a judge with short pauses between retries."""
    monkeypatch.setattr("tasks.models.clients.backoff.FIRST", 0.01)
    monkeypatch.setattr("tasks.models.clients.replica_pool.PROBES", Backoff(0.02, 0.05))
    opened: list[OpenAIJudge] = []

    def open_one(*servers: FakeServer, **options: Any) -> OpenAIJudge:
        opened.append(OpenAIJudge(ServerJudgeOptions(urls=tuple(server.url for server in servers), **options)))
        return opened[-1]

    yield open_one
    for judge in opened:
        judge.close()
