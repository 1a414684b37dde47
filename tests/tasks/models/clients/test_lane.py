"""Texts are asked for first, and leave room for labels that wait."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import pytest

from tasks.models.clients.jobs import Call, Job, Request
from tasks.models.clients.joint_requests import Companions
from tasks.models.clients.lane import JobQueue
from tasks.models.clients.replica import Replica
from tasks.models.clients.replica_pool import ReplicaPool, RetryLimits


def fill(words: Sequence[str], companions: Companions | None = None) -> JobQueue:
    """Return a queue of requests; those whose names begin with "text" ask for texts."""
    requests = [
        Request("chat", {"name": word}, companions=companions, writes=word.startswith("text")) for word in words
    ]
    queue = JobQueue()
    for job in Call(requests, lambda _position, _reply: None).jobs:
        queue.append(job)
    return queue


def names(jobs: Sequence[Job]) -> list[str]:
    return [job.request.body["name"] for job in jobs]


def in_a_loop(check: Callable[[], None]) -> None:
    async def run() -> None:
        check()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("texts", "last", "expected"),
    [
        (True, False, ["text 1", "text 2", "label 1", "label 2"]),
        (False, False, ["label 1", "label 2", "text 1", "text 2"]),
        (True, True, ["text 2", "text 1", "label 2", "label 1"]),
    ],
)
def test_sorts_are_taken_apart_and_in_their_order(texts: bool, last: bool, expected: list[str]) -> None:
    def check() -> None:
        queue = fill(["label 1", "text 1", "label 2", "text 2"])
        taken = [queue.take(9, texts=texts, last=last) for _ in range(5)]
        assert [name for jobs in taken for name in names(jobs)] == expected
        assert taken[4] == []
        assert len(queue) == 0

    in_a_loop(check)


def test_a_request_that_is_put_back_is_the_next_of_its_sort() -> None:
    def check() -> None:
        queue = fill(["label 1", "text 1", "label 2"])
        (job,) = queue.take(9, texts=False)
        queue.appendleft(job)
        assert names(list(queue)) == ["text 1", "label 1", "label 2"]

    in_a_loop(check)


def test_requests_that_are_sent_together_are_of_one_sort() -> None:
    def check() -> None:
        queue = fill(["text 1", "label 1", "text 2", "label 2", "label 3"], Companions("same", "max_tokens", 8))
        assert names(queue.take(2, texts=False)) == ["label 1", "label 2"]
        assert names(queue.take(9, texts=True)) == ["text 1", "text 2"]
        assert names(queue.take(9, texts=True)) == ["label 3"]

    in_a_loop(check)


class SilentReplica:
    """A replica that notes what it is asked for, and does not reply."""

    url = "http://silent/v1"

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def post(self, _path: str, body: Mapping[str, str]) -> None:
        self.asked.append(body["name"])
        await asyncio.Event().wait()


@pytest.mark.parametrize(("labels", "texts_in_flight"), [(20, 4), (1, 7), (0, 8)])
def test_texts_leave_half_of_the_room_to_labels_that_wait(labels: int, texts_in_flight: int) -> None:
    async def ask() -> list[str]:
        replica = SilentReplica()
        pool = ReplicaPool([cast("Replica", replica)], 8, 8, RetryLimits(0, 1.0))
        requests = [Request("chat", {"name": f"label {i}"}) for i in range(labels)]
        requests += [Request("chat", {"name": f"text {i}"}, writes=True) for i in range(20)]
        sending = asyncio.create_task(pool.send(requests))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        sending.cancel()
        await pool.close()
        return replica.asked

    asked = asyncio.run(ask())
    assert len(asked) == 8
    assert sum(name.startswith("text") for name in asked) == texts_in_flight
