"""Use several replicas as one server that works as long as one of them does.

Each replica has a queue, and a limit of conversations in flight. A request waits in the queue of the replica that its
affinity selects; an idle replica takes requests from the end of the queue of a busy or unreachable one. Requests that
may be sent together leave the queue together. An unreachable replica is probed until it is back, and its requests
return to a queue.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from metric_core.errors import BudgetSpentError
from tasks.metering.server_counts import ReplyTokens
from tasks.models.clients.backoff import backoff_seconds
from tasks.models.clients.jobs import Arrived, Call, Job, Post, Request, RequestObserver, UnusableError
from tasks.models.clients.joint_requests import BATCH, NO_SUCH_ENDPOINT, join_bodies, split_reply
from tasks.models.clients.lane import FlightLimit, Lane, choose_replica
from tasks.models.clients.replica import LostReplyError, Replica, Reply, UnreachableError, get_count, get_reported_count
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

_UNAVAILABLE = (502, 503, 504)
"""Statuses of a server that is starting or overloaded, or of a gateway that does not reach it."""

_INCAPABLE = (500, 501)
"""Errors of servers that do not support a request. Other errors mean that a server is not available."""
_REFUSALS = {401: "it refuses the key", 403: "it refuses the key", 404: "it knows no such address or model"}


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """The limits of retries.

    Args:
        seconds: Seconds for which all replicas may be unreachable.
    """

    max_retries: int
    seconds: float


class ReplicaPool:
    """The replicas of a model. It must be created and used within one event loop.

    Args:
        replicas: Replicas that serve the same model; at least one.
        concurrency: Maximum number of conversations in flight per replica.
        peak_concurrency: Number to which it rises while a replica answers several conversations per request soon.
        activity: Told about requests in flight, timeouts and replicas that are down.
    """

    def __init__(
        self,
        replicas: Sequence[Replica],
        concurrency: int,
        peak_concurrency: int,
        limits: RetryLimits,
        activity: ServerActivity | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._lanes = [Lane(replica, FlightLimit(concurrency, peak_concurrency)) for replica in replicas]
        self._names = [replica.url for replica in replicas]
        self._limits = limits
        self._activity = activity or ServerActivity(" and ".join(self._names))
        self.simplest: Request | None = None
        """A request that every working server answers, to find out whether a request or the server fails."""
        self.check_returning: Callable[[Replica], Awaitable[str | None]] | None = None
        """Returns why a replica that was away must not get work; None if it may."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(
        self,
        requests: Sequence[Request],
        arrived: Arrived = lambda _position, _reply: None,
        observer: RequestObserver | None = None,
    ) -> list[Reply]:
        """Post requests, roughly in the given order, and return the replies in exactly that order.

        Args:
            arrived: Called with each reply before this method returns or raises; its errors are raised here.
            observer: Told of each request.

        Raises:
            UnusableError: No server can be reached, or a reply means that no request will succeed.
            BudgetSpentError: The observer let no more requests through; the replies to the others have arrived.
        """
        call = Call(requests, arrived, observer)
        for job in call.jobs:
            self._lanes[choose_replica(job.request.affinity, self._names)].waiting.append(job)
        self._dispatch()
        try:
            return await call.wait()
        except UnusableError as error:
            raise UnusableError(f"{error} ({call.answered} of {len(requests)} requests were answered)") from error
        finally:
            call.leave()

    def limit(self, most: int) -> None:
        """Let no more conversations be in flight per replica. Call it before the first request."""
        for lane in self._lanes:
            lane.limit = FlightLimit(min(most, lane.limit.value), min(most, lane.limit.value))

    def suspend(self, replica: Replica, problem: str) -> None:
        """Give a replica no work until it can be reached.

        Args:
            problem: Reason, for the log.
        """
        for lane in self._lanes:
            if lane.replica is replica:
                self._mark_down(lane, problem)
        self._dispatch()

    async def close(self) -> None:
        """Abort all requests in flight."""
        for lane in self._lanes:
            lane.is_open = False
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _dispatch(self) -> None:
        """Send what waits to the replicas that have room."""
        while sum(map(self._start_next, self._lanes)):  # one after the other, so that none runs dry first
            pass

    def _start_next(self, lane: Lane) -> bool:
        room = lane.limit.value - lane.busy
        jobs = self._take(lane, room) if lane.is_open and room > 0 else []
        if not jobs:
            return False
        _count(lane, jobs, 1)
        post = Post(jobs)
        for job in jobs:
            job.post = post
            job.first_sent = self._loop.time() if job.first_sent is None else job.first_sent
        post.task = self._start(self._serve(lane, jobs))
        post.task.add_done_callback(lambda _task: self._free(lane, post))
        return True

    def _take(self, lane: Lane, room: int) -> list[Job]:
        """Take requests from the queue of a replica, or else from the end of that of a busy or unreachable one."""

        def take(owner: Lane, *, last: bool) -> list[Job]:
            return owner.waiting.take(room, texts=lane.wants_texts, last=last, together=lane.takes_several)

        if jobs := take(lane, last=False):
            return jobs
        if len(self._lanes) > 1:
            for other in sorted(self._lanes, key=lambda other: -len(other.waiting)):
                is_stuck = other.busy >= other.limit.value or not other.is_open
                if is_stuck and (jobs := take(other, last=True)):
                    return jobs
        return []

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _free(self, lane: Lane, post: Post) -> None:
        _count(lane, post.jobs, -1)
        for job in post.jobs:
            if job.post is post:
                job.post = None
        for call in _calls(post.jobs):
            call.end_if_stopped()
        self._dispatch()

    async def _serve(self, lane: Lane, jobs: Sequence[Job]) -> None:
        started = self._loop.time()
        try:
            reply = await self._post(lane, jobs)
        except BudgetSpentError as error:
            for call in _calls(jobs):
                call.stop(error)
        except UnreachableError as error:
            self._mark_down(lane, str(error))
            self._put_back(jobs, lane)
        except LostReplyError as error:
            jobs[0].sent += 1
            if error.timed_out:
                self._count_timeout(lane, jobs, str(error), started)
            self._part(jobs)
            await self._retry(lane, jobs, Reply(0, str(error), self._loop.time() - started))
        except Exception as error:  # noqa: BLE001 the caller waits: it must hear of every error
            _fail(jobs, error)
        else:
            jobs[0].sent += 1
            if len(jobs) > 1:
                await self._settle_several(lane, jobs, reply)
            else:
                await self._settle_one(lane, jobs[0], reply)

    def _count_timeout(self, lane: Lane, jobs: Sequence[Job], problem: str, started: float) -> None:
        self._activity.count_timeout()
        for job in jobs:
            job.timeouts += 1
        if lane.last_answer < started:
            self._mark_down(lane, problem)

    async def _post(self, lane: Lane, jobs: Sequence[Job]) -> Reply:
        request = jobs[0].request
        path, body = request.path, request.body
        if len(jobs) > 1 and request.companions is not None:
            path = BATCH
            body = join_bodies([job.request.body for job in jobs], request.companions.limit_field)
        observer = jobs[0].call.observer
        observed = None if observer is None else await observer.begin(len(jobs))
        reply: Reply | None = None
        end = self._activity.start_request()
        try:
            reply = await lane.replica.post(path, body)
            return reply
        finally:
            end()
            if observed is not None:
                observed(None if reply is None else _tokens_of(reply))

    async def _settle_one(self, lane: Lane, job: Job, reply: Reply) -> None:
        is_unusable = reply.status == 200 and not reply.is_answer and reply.unread is None
        if reply.status in _TRANSIENT or reply.status >= 500 or is_unusable:
            await self._retry(lane, [job], reply)
        else:
            lane.last_answer = self._loop.time()
            _settle(lane, job, reply)

    async def _settle_several(self, lane: Lane, jobs: Sequence[Job], reply: Reply) -> None:
        """Settle requests that were sent together; if the reply is none for each of them, send them one by one."""
        replies = split_reply(reply, [job.request.body for job in jobs]) if reply.is_answer else None
        if replies is not None:
            lane.last_answer = self._loop.time()
            is_full = bool(lane.waiting) and lane.busy + len(jobs) > lane.limit.value
            lane.limit.note_reply(reply.seconds, len(jobs), get_count(reply, "completion_tokens"), is_full=is_full)
            for job, own in zip(jobs, replies, strict=True):
                job.call.finish(job, own)
        elif reply.status in (*_TRANSIENT, *_UNAVAILABLE):
            lane.limit.note_refusal()
            await self._retry(lane, jobs, reply)
        else:
            self._part(jobs)
            if lane.takes_several and (reply.is_answer or reply.status in NO_SUCH_ENDPOINT):
                lane.takes_several = False
                logger.warning("%s does not answer several conversations in one request any more", lane.replica.url)
            if reply.status >= 500:
                await self._retry(lane, jobs, reply)
            else:
                self._put_back(jobs, lane)

    def _part(self, jobs: Sequence[Job]) -> None:
        """Send requests that were sent together one by one from now on: one of them may spoil the others."""
        if len(jobs) > 1:
            jobs[0].splits += 1
            for job in jobs:
                job.is_alone = True

    async def _retry(self, lane: Lane, jobs: Sequence[Job], reply: Reply) -> None:
        """Send requests again that failed together; those that have used their tries get the reply, and no others."""
        for job in jobs:
            job.tries += 1
        spent = [job for job in jobs if not self._may_retry(job, reply)]
        fresh = [job for job in jobs if job not in spent]
        if fresh:
            await asyncio.sleep(backoff_seconds(max(job.tries for job in fresh), reply.retry_after))
            self._put_back(fresh, lane if reply.status == _TOO_MANY else self._choose_other(lane))
        if fresh and spent:
            self._dispatch()  # they need not wait until it is known whether the server works
        if spent:
            await self._settle_spent(lane, spent, reply)

    def _may_retry(self, job: Job, reply: Reply) -> bool:
        most = self._limits.max_retries
        limit = min(1, most) if _is_incapable(job, reply) else most
        return job.tries <= limit and job.timeouts < MOST_TIMEOUTS

    async def _settle_spent(self, lane: Lane, jobs: Sequence[Job], reply: Reply) -> None:
        job = max(jobs, key=lambda job: (job.tries, job.timeouts))
        if _is_incapable(job, reply) or await self._is_working(lane, job.first_sent or 0.0):
            for each in jobs:
                each.call.finish(each, reply)
        else:
            status = f"{reply.status}: " if reply.status else ""
            problem = f"{lane.replica.url} gave no answer in {job.tries} tries. Last: {status}{reply.message}"
            _fail(jobs, UnusableError(problem))

    async def _is_working(self, lane: Lane, since: float) -> bool:
        """Return whether a server has answered since a time, or answers the simplest request now."""
        if any(other.last_answer >= since for other in self._lanes):
            return True
        if self.simplest is None:
            return False
        try:
            return (await lane.replica.post(self.simplest.path, self.simplest.body)).is_answer
        except (UnreachableError, LostReplyError):
            return False

    def _choose_other(self, lane: Lane) -> Lane:
        others = [other for other in self._lanes if other is not lane and other.is_open]
        return min(others, key=lambda other: len(other.waiting), default=lane)

    def _put_back(self, jobs: Sequence[Job], lane: Lane) -> None:
        for job in reversed(jobs):
            job.post = None
            lane.waiting.appendleft(job)

    def _mark_down(self, lane: Lane, problem: str) -> None:
        if lane.is_open:
            lane.is_open = False
            lane.down_since = self._loop.time()
            self._activity.mark_down(lane.replica.url)
            logger.warning("%s is down: %s", lane.replica.url, problem)
            self._start(self._probe(lane, problem))

    async def _probe(self, lane: Lane, problem: str) -> None:
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
        lane.is_open = True
        self._dispatch()

    def _give_up(self, problem: str) -> None:
        if any(lane.is_open for lane in self._lanes):
            return
        all_down_since = max(lane.down_since for lane in self._lanes)
        if self._loop.time() < all_down_since + self._limits.seconds:
            return
        for lane in self._lanes:
            for job in lane.waiting:
                job.call.fail(UnusableError(f"{' and '.join(self._names)} cannot be reached. {problem}"))


def _is_incapable(job: Job, reply: Reply) -> bool:
    """Return whether a reply may say that the server does not support a request, which it need not."""
    return job.request.optional and reply.status in _INCAPABLE


def _count(lane: Lane, jobs: Sequence[Job], sign: int) -> None:
    lane.busy += sign * len(jobs)
    lane.writing += sign * sum(job.request.writes for job in jobs)


def _calls(jobs: Sequence[Job]) -> set[Call]:
    return {job.call for job in jobs}


def _fail(jobs: Sequence[Job], error: Exception) -> None:
    for call in _calls(jobs):
        call.fail(error)


def _tokens_of(reply: Reply) -> ReplyTokens | None:
    if not reply.is_answer:
        return None
    prompt, output = get_count(reply, "prompt_tokens"), get_count(reply, "completion_tokens")
    return ReplyTokens(prompt, get_reported_count(reply, "cached_tokens"), output)


def _settle(lane: Lane, job: Job, reply: Reply) -> None:
    """Finish a request with a reply that no retry would change."""
    redirects = 300 <= reply.status < 400
    if job.request.optional or not (redirects or reply.status in _REFUSALS):
        job.call.finish(job, reply)
        return
    problem = _REFUSALS.get(reply.status, "it redirects the client")
    words = "" if reply.status in (401, 403) else f". It says: {reply.message}"
    job.call.fail(UnusableError(f"{lane.replica.url} answers {reply.status}: {problem}{words}"))
