"""A connection leaves no request behind when it gives up on a server."""

import asyncio
from typing import Any

import pytest

from tasks.models.clients.connection import Connection
from tasks.models.clients.jobs import Request, UnusableError
from tasks.options.judge_server_options import ServerJudgeOptions
from tests.tasks.models.judges.openai.fake_server import FakeServer, Fault


async def count_posts() -> int:
    """Return how many requests of probes are in flight."""
    return sum("_post_patiently" in repr(task.get_coro()) for task in asyncio.all_tasks())


def test_a_lost_reply_ends_the_other_requests_of_a_probe() -> None:
    def say(body: dict[str, Any]) -> Fault:
        return Fault(hang_up=True) if body["messages"][0]["content"] == "lost" else Fault(silence=True)

    bodies = [{"model": "m", "messages": [{"role": "user", "content": word}]} for word in ("silent", "lost")]
    with FakeServer(say=say) as server:
        connection = Connection(ServerJudgeOptions(urls=(server.url,)))
        try:
            with pytest.raises(UnusableError, match="cannot be reached"):
                connection.ask_each([Request("chat/completions", body) for body in bodies], lambda _replies: True)
            assert connection._background.run(count_posts()) == 0
        finally:
            connection.close()
