"""Requests that are sent together share a reply, and no more than that."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest

from tasks.models.clients.jobs import Call, Request
from tasks.models.clients.joint_requests import Companions
from tasks.models.clients.replica import Replica, Reply
from tasks.models.clients.replica_pool import ReplicaPool, RetryLimits
from tests.waiting import DEAD_SECONDS

REQUEST = Request(
    "chat/completions",
    {"messages": [{"content": "Hello."}], "max_tokens": 1},
    companions=Companions("same", "max_tokens", 8),
)
OVERLOADED = Reply(503, {"error": "overloaded"}, 0.1)


class Stub:
    """A replica that answers each conversation."""

    url = "http://replica/v1"

    async def post(self, _path: str, body: Mapping[str, Any]) -> Reply:
        choices = [{"index": i, "message": {"content": "Hello."}} for i, _ in enumerate(body["messages"])]
        return Reply(200, {"choices": choices, "usage": {}}, 0.1)


@pytest.mark.parametrize("worn", ["tries", "timeouts"])
def test_a_request_that_has_used_its_tries_fails_alone(monkeypatch: pytest.MonkeyPatch, worn: str) -> None:
    monkeypatch.setattr("tasks.models.clients.backoff.FIRST", 0.01)

    async def send() -> list[Reply]:
        pool = ReplicaPool([cast("Replica", Stub())], 8, 8, RetryLimits(max_retries=3, seconds=0.0))
        (lane,) = pool._lanes
        call = Call([REQUEST] * 4, lambda _position, _reply: None)
        setattr(call.jobs[1], worn, 3)
        for job in call.jobs:
            job.first_sent = lane.last_answer = 0.0
        await pool._retry(lane, call.jobs, OVERLOADED)
        pool._dispatch()
        replies = await asyncio.wait_for(call.wait(), DEAD_SECONDS)
        await pool.close()
        return replies

    assert [reply.status for reply in asyncio.run(send())] == [200, 503, 200, 200]
