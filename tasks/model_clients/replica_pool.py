"""Use several replicas as one server that works as long as one of them does.

Each replica has a queue and as many workers as it may have requests in flight. A request waits in the queue of the
replica that its affinity selects; an idle worker takes requests from the end of the queue of a busy or unreachable
replica. An unreachable replica is probed until it is back, and its requests return to a queue.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Protocol, TypeAlias, cast

from metric_core.errors import BudgetSpentError
from tasks.metering.meter import ReplyTokens
from tasks.model_clients.backoff import backoff_seconds
from tasks.model_clients.replica import LostReplyError, Replica, Reply, UnreachableError
from tasks.model_clients.reply_fields import get_count, get_reported_count
from tasks.model_clients.routing import choose_replica
from tasks.runtime.activity import ServerActivity
from tasks.runtime.retry import Backoff

logger = logging.getLogger(__name__)

PROBES = Backoff(first=0.25, longest=5.0)
"""Pauses between two probes of a server that is down."""

MOST_TIMEOUTS = 2
"""Timeouts after which a request fails; each of them takes long."""

_TOO_MANY = 429
_TRANSIENT = (408, 425, _TOO_MANY)
"""Statuses that do not depend on the content of a request: it arrived too slowly, too early, or with too many."""

_INCAPABLE = (500, 501)
"""Errors of servers that do not support a request. Other errors mean that a server is not available."""
_REFUSALS = {401: "it refuses the key", 403: "it refuses the key", 404: "it knows no such address or model"}


Arrived: TypeAlias = Callable[[int, Reply], None]
"""Called with the position of a request and its reply when that arrives, in the event loop."""


class RequestObserver(Protocol):
    """Told of the requests of one caller; it may hold them back."""

    async def begin(self, conversations: int) -> Callable[[ReplyTokens | None], None]:
        """Wait until a request may be sent, and return a function to call at its end.

        Raises:
            BudgetSpentError: No request may be sent any more.
        """


class _GivenUpError(Exception):
    """Nobody waits for the reply to a request any more."""


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
        conversations: Number of conversations in the request.
    """

    path: str
    body: Mapping[str, Any]
    affinity: str = ""
    optional: bool = False
    conversations: int = 1


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """The limits of retries.

    Args:
        max_retries: Number of retries of a request.
        seconds: Seconds for which all replicas may be unreachable.
    """

    max_retries: int
    seconds: float


@dataclass(slots=True)
class _Job:
    """A request in progress, with the time when it was first sent and the number of times it was sent."""

    request: Request
    position: int
    arrived: Arrived
    future: "asyncio.Future[Reply]"
    observer: RequestObserver | None = None
    first_sent: float | None = None
    sent: int = 0
    tries: int = 0
    timeouts: int = 0


@dataclass(slots=True)
class _Lane:
    """A replica with its queue. `last_answer` and `down_since` are times of the event loop."""

    replica: Replica
    waiting: deque[_Job] = field(default_factory=deque)
    is_open: asyncio.Event = field(default_factory=asyncio.Event)
    busy: int = 0
    last_answer: float = float("-inf")
    down_since: float = 0.0


class ReplicaPool:
    """The replicas of a model. It must be created and used within one event loop.

    Args:
        replicas: Replicas that serve the same model; at least one.
        concurrency: Maximum number of requests in flight per replica.
        limits: Limits of retries.
        activity: Told about requests in flight, timeouts and replicas that are down.
    """

    def __init__(
        self,
        replicas: Sequence[Replica],
        concurrency: int,
        limits: RetryLimits,
        activity: ServerActivity | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._lanes = [_Lane(replica) for replica in replicas]
        self._names = [replica.url for replica in replicas]
        self._concurrency = concurrency
        self._limits = limits
        self._activity = activity or ServerActivity(" and ".join(self._names))
        self._has_work = asyncio.Event()
        self.simplest: Request | None = None
        """A request that every working server answers, to find out whether a request or the server fails."""
        self.check_returning: Callable[[Replica], Awaitable[str | None]] | None = None
        """Returns why a replica that was away must not get work; None if it may."""
        for lane in self._lanes:
            lane.is_open.set()
        self._tasks = {self._loop.create_task(self._work(lane)) for lane in self._lanes for _ in range(concurrency)}

    async def send(
        self,
        requests: Sequence[Request],
        arrived: Arrived = lambda _position, _reply: None,
        observer: RequestObserver | None = None,
    ) -> list[Reply]:
        """Post requests, roughly in the given order, and return the replies in exactly that order.

        Args:
            requests: Requests to post.
            arrived: Called with each reply before this method returns or raises; its errors are raised here.
            observer: Told of each request.

        Raises:
            UnusableError: No server can be reached, or a reply means that no request will succeed.
            BudgetSpentError: The observer let no more requests through; the replies to the others have arrived.
        """
        jobs = [_Job(request, i, arrived, self._loop.create_future(), observer) for i, request in enumerate(requests)]
        for job in jobs:
            self._lanes[choose_replica(job.request.affinity, self._names)].waiting.append(job)
        self._has_work.set()
        try:
            return list(await asyncio.gather(*(job.future for job in jobs)))
        except BudgetSpentError:
            await asyncio.wait([job.future for job in jobs])  # what is in flight is paid for
            raise
        except UnusableError as error:
            answered = sum(job.future.done() and job.future.exception() is None for job in jobs)
            raise UnusableError(f"{error} ({answered} of {len(jobs)} requests were answered)") from error
        finally:
            for job in jobs:
                job.future.cancel()

    def suspend(self, replica: Replica, problem: str) -> None:
        """Give a replica no work until it can be reached.

        Args:
            replica: One of the replicas.
            problem: Reason, for the log.
        """
        for lane in self._lanes:
            if lane.replica is replica:
                self._mark_down(lane, problem)

    async def close(self) -> None:
        """Stop all workers."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, lane: _Lane) -> None:
        while True:
            await lane.is_open.wait()
            job = self._next(lane)
            if job is None:
                self._has_work.clear()
                await self._has_work.wait()
            elif not job.future.done():
                lane.busy += 1
                if lane.waiting and lane.busy == self._concurrency:
                    self._has_work.set()
                await self._serve(lane, job)
                lane.busy -= 1

    def _next(self, lane: _Lane) -> _Job | None:
        if lane.waiting:
            return lane.waiting.popleft()
        for other in sorted(self._lanes, key=lambda other: -len(other.waiting)):
            if other.waiting and (other.busy >= self._concurrency or not other.is_open.is_set()):
                return other.waiting.pop()
        return None

    async def _serve(self, lane: _Lane, job: _Job) -> None:
        started = self._loop.time()
        job.first_sent = started if job.first_sent is None else job.first_sent
        try:
            reply = await self._post_observed(lane, job)
        except _GivenUpError:
            return
        except UnreachableError as error:
            self._mark_down(lane, str(error))
            self._put_back(job, lane)
        except LostReplyError as error:
            job.sent += 1
            job.timeouts += error.timed_out
            if error.timed_out:
                self._activity.count_timeout()
            if error.timed_out and lane.last_answer < started:
                self._mark_down(lane, str(error))
            await self._retry(lane, job, Reply(0, str(error), self._loop.time() - started))
        except Exception as error:  # noqa: BLE001 the caller waits: it must hear of every error
            if not job.future.done():
                job.future.set_exception(error)
        else:
            job.sent += 1
            is_unusable = reply.status == 200 and not reply.is_answer and reply.unread is None
            if reply.status in _TRANSIENT or reply.status >= 500 or is_unusable:
                await self._retry(lane, job, reply)
            else:
                lane.last_answer = self._loop.time()
                _settle(lane, job, reply)

    async def _post_observed(self, lane: _Lane, job: _Job) -> Reply:
        """Post a request once its observer lets it through, and tell the observer how it ended."""
        if job.observer is None:
            return await self._post(lane, job)
        end, tokens = await job.observer.begin(job.request.conversations), None
        try:
            reply = await self._post(lane, job)
            tokens = _tokens_of(reply)
            return reply
        finally:
            end(tokens)

    async def _post(self, lane: _Lane, job: _Job) -> Reply:
        """Post a request; close its connection when nobody waits for the reply any more, so that the server stops.

        Raises:
            _GivenUpError: Nobody waits for the reply.
        """
        here = self._loop.create_task(lane.replica.post(job.request.path, job.request.body))
        job.future.add_done_callback(give_up := lambda _future: here.cancel())
        end = self._activity.start_request()
        try:
            return await here
        except asyncio.CancelledError:
            if job.future.done() and not cast("asyncio.Task[object]", asyncio.current_task()).cancelling():
                raise _GivenUpError from None
            raise
        finally:
            end()
            here.cancel()
            job.future.remove_done_callback(give_up)

    async def _retry(self, lane: _Lane, job: _Job, reply: Reply) -> None:
        job.tries += 1
        incapable = job.request.optional and reply.status in _INCAPABLE
        limit = min(1, self._limits.max_retries) if incapable else self._limits.max_retries
        if job.tries <= limit and job.timeouts < MOST_TIMEOUTS:
            await asyncio.sleep(backoff_seconds(job.tries, reply.retry_after))
            self._put_back(job, lane if reply.status == _TOO_MANY else self._choose_other(lane))
        elif incapable or await self._is_working(lane, job.first_sent or 0.0):
            _finish(job, reply)
        else:
            status = f"{reply.status}: " if reply.status else ""
            _fail(job, f"{lane.replica.url} gave no answer in {job.tries} tries. Last: {status}{reply.message}")

    async def _is_working(self, lane: _Lane, since: float) -> bool:
        """Return whether a server has answered since a time, or answers the simplest request now."""
        if any(other.last_answer >= since for other in self._lanes):
            return True
        if self.simplest is None:
            return False
        try:
            return (await lane.replica.post(self.simplest.path, self.simplest.body)).is_answer
        except (UnreachableError, LostReplyError):
            return False

    def _choose_other(self, lane: _Lane) -> _Lane:
        others = [other for other in self._lanes if other is not lane and other.is_open.is_set()]
        return min(others, key=lambda other: len(other.waiting), default=lane)

    def _put_back(self, job: _Job, lane: _Lane) -> None:
        lane.waiting.appendleft(job)
        self._has_work.set()

    def _mark_down(self, lane: _Lane, problem: str) -> None:
        if lane.is_open.is_set():
            lane.is_open.clear()
            lane.down_since = self._loop.time()
            self._has_work.set()
            self._activity.mark_down(lane.replica.url)
            logger.warning("%s is down: %s", lane.replica.url, problem)
            task = self._loop.create_task(self._probe(lane, problem))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _probe(self, lane: _Lane, problem: str) -> None:
        """Probe a server until it is back; fail the waiting requests if all servers are down for too long."""
        for attempt in count(1):
            wait = PROBES.seconds(attempt)
            left = lane.down_since + self._limits.seconds - self._loop.time()
            await asyncio.sleep(min(wait, left) if left > 0 else wait)
            try:
                if (await lane.replica.get("models")).status < 500:
                    refusal = None if self.check_returning is None else await self.check_returning(lane.replica)
                    if refusal is None:
                        break
                    problem = f"{lane.replica.url}: {refusal}"
            except (UnreachableError, LostReplyError) as error:
                problem = str(error)
            self._give_up(problem)
        self._activity.mark_up(lane.replica.url)
        logger.warning("%s is back", lane.replica.url)
        lane.is_open.set()
        self._has_work.set()

    def _give_up(self, problem: str) -> None:
        if any(lane.is_open.is_set() for lane in self._lanes):
            return
        all_down_since = max(lane.down_since for lane in self._lanes)
        if self._loop.time() < all_down_since + self._limits.seconds:
            return
        for lane in self._lanes:
            for job in lane.waiting:
                _fail(job, f"{' and '.join(self._names)} cannot be reached. {problem}")


def _tokens_of(reply: Reply) -> ReplyTokens | None:
    if not reply.is_answer:
        return None
    prompt, output = get_count(reply, "prompt_tokens"), get_count(reply, "completion_tokens")
    return ReplyTokens(prompt, get_reported_count(reply, "cached_tokens"), output)


def _settle(lane: _Lane, job: _Job, reply: Reply) -> None:
    """Finish a request with a reply that no retry would change."""
    redirects = 300 <= reply.status < 400
    if job.request.optional or not (redirects or reply.status in _REFUSALS):
        _finish(job, reply)
        return
    problem = _REFUSALS.get(reply.status, "it redirects the client")
    words = "" if reply.status in (401, 403) else f". It says: {reply.message}"
    _fail(job, f"{lane.replica.url} answers {reply.status}: {problem}{words}")


def _finish(job: _Job, reply: Reply) -> None:
    if job.future.done():
        return
    if job.sent > 1:
        reply = replace(reply, requests=job.sent)
    try:
        job.arrived(job.position, reply)
    except Exception as error:  # noqa: BLE001 the caller waits: it must hear of every error
        job.future.set_exception(error)
    else:
        job.future.set_result(reply)


def _fail(job: _Job, problem: str) -> None:
    if not job.future.done():
        job.future.set_exception(UnusableError(problem))
