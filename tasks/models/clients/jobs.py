"""The requests of one call while they wait for a replica and for its reply."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

from tasks.metering.server_counts import ReplyTokens
from tasks.models.clients.joint_requests import Companions
from tasks.models.clients.replica import Reply

Arrived: TypeAlias = Callable[[int, Reply], None]
"""Called with the position of a request and its reply when that arrives, in the event loop."""


class RequestObserver(Protocol):
    """Told of the requests of one caller; it may hold them back."""

    async def begin(self, conversations: int) -> Callable[[ReplyTokens | None], None]:
        """Wait until a request may be sent, and return a function to call at its end.

        Raises:
            BudgetSpentError: No request may be sent any more.
        """


class UnusableError(Exception):
    """The servers cannot be used at all; the message says why."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request to post.

    Args:
        path: Path below `/v1`; one that starts with a slash is relative to the server's root.
        body: JSON object.
        affinity: Requests with the same affinity go to the same replica.
        optional: True if the server may not support the request: a refusal or an error is then an ordinary reply.
        companions: Requests with which it may be sent together; None if it must be sent alone.
        writes: True if the reply is a text, which takes long to write.
    """

    path: str
    body: Mapping[str, Any]
    affinity: str = ""
    optional: bool = False
    companions: Companions | None = None
    writes: bool = False


class Call:
    """The requests that one caller sends together.

    Args:
        observer: Notified of each request; None without an observer.
    """

    def __init__(self, requests: Sequence[Request], arrived: Arrived, observer: RequestObserver | None = None) -> None:
        self.jobs = [Job(self, i, request) for i, request in enumerate(requests)]
        self.is_over = not requests
        """Whether nobody waits for replies any more: all arrived, one is an error, or the caller has left."""
        self.observer = observer
        self.stopped: Exception | None = None
        """Why no more requests are sent; None if they are."""
        self._arrived = arrived
        self._replies: list[Reply | None] = [None] * len(requests)
        self._missing = len(requests)
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def answered(self) -> int:
        """Number of requests that were answered."""
        return len(self._replies) - self._missing

    async def wait(self) -> list[Reply]:
        """Return the replies once all have arrived.

        Raises:
            UnusableError: One of the requests cannot be answered.
        """
        if not self.is_over:
            await self._done
        return [reply for reply in self._replies if reply is not None]

    def leave(self) -> None:
        """Cancel queued requests, and requests in flight that nobody awaits."""
        self.is_over = True
        for post in {job.post for job in self.jobs if job.post is not None}:
            post.end_if_useless()
        # What the callback holds, such as a connection, must not wait for the garbage collector.
        self.jobs, self._arrived = [], _ignore

    def finish(self, job: "Job", reply: Reply) -> None:
        """Pass the reply to a request on."""
        if self.is_over or job.is_done:
            return
        job.is_done = True
        if reply.requests != job.sent or reply.splits != job.splits:
            reply = replace(reply, requests=job.sent, splits=job.splits)
        try:
            self._arrived(job.position, reply)
        except Exception as error:  # noqa: BLE001 the caller waits: it must hear of every error
            self.fail(error)
            return
        self._replies[job.position] = reply
        self._missing -= 1
        if self._missing == 0:
            self.is_over = True
            self._done.set_result(None)

    def stop(self, error: Exception) -> None:
        """Send no more requests, and tell the caller why once those in flight are answered: they are paid for."""
        self.stopped = self.stopped or error

    def end_if_stopped(self) -> None:
        """Report to the caller why no more requests are sent, once none is in flight."""
        if self.stopped is not None and all(job.post is None for job in self.jobs):
            self.fail(self.stopped)

    def fail(self, error: Exception) -> None:
        """Report to the caller that a request cannot be answered."""
        if not self.is_over:
            self.is_over = True
            self._done.set_exception(error)


def _ignore(_position: int, _reply: Reply) -> None:
    """Do nothing with a reply."""


@dataclass(eq=False, slots=True)
class Job:
    """A request in progress.

    Args:
        call: Requests to which it belongs.
        position: Position among them.
        first_sent: Time of the event loop when it was first sent.
        sent: Number of times that it was sent; of those that were sent together, the first one counts.
        tries: Number of times that it failed.
        timeouts: Number of these that were timeouts.
        splits: Number of requests with several conversations that failed and began with this one.
        is_alone: True if it must be sent alone, because a request with several conversations has failed.
        is_done: True if it has its reply.
        post: Request in flight that it is part of.
    """

    call: Call
    position: int
    request: Request
    first_sent: float | None = None
    sent: int = 0
    tries: int = 0
    timeouts: int = 0
    splits: int = 0
    is_alone: bool = False
    is_done: bool = False
    post: "Post | None" = None

    @property
    def is_void(self) -> bool:
        """Whether nobody waits for its reply."""
        return self.is_done or self.call.is_over or (self.call.stopped is not None and self.post is None)

    def may_join(self, first: "Job") -> bool:
        """Return whether it can be sent together with another request."""
        mine, its = self.request.companions, first.request.companions
        if mine is None or its is None or mine.key != its.key or self.is_alone or self.is_void:
            return False
        return self.call.observer is first.call.observer


@dataclass(eq=False, slots=True)
class Post:
    """A request in flight, with one conversation or several.

    Args:
        jobs: Requests that it consists of.
        task: Task that waits for its reply.
    """

    jobs: Sequence[Job]
    task: "asyncio.Task[None] | None" = None

    def end_if_useless(self) -> None:
        """Close the connection if nobody waits for the reply any more, so that the server stops."""
        if self.task is not None and all(job.is_void for job in self.jobs):
            self.task.cancel()
