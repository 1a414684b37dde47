"""Connect synchronous callers to model servers through a background thread, a session and a replica pool."""

import asyncio
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import cast

from aiohttp import ClientSession, ClientTimeout, TCPConnector

from tasks.metering.server_counters import PATH as METRICS
from tasks.metering.server_counters import Counters, add_counters
from tasks.models.clients.backoff import backoff_seconds
from tasks.models.clients.event_loop import EventLoopThread
from tasks.models.clients.jobs import Arrived, Request, RequestObserver, UnusableError
from tasks.models.clients.replica import LostReplyError, Replica, Reply, UnreachableError
from tasks.models.clients.replica_pool import ReplicaPool, RetryLimits
from tasks.models.clients.request_trace import is_traced, note_requests
from tasks.options.server_options import ServerOptions
from tasks.runtime.activity import ServerActivity
from tasks.runtime.cancellation import Cancellation, current_cancellation
from tasks.runtime.http_bodies import ACCEPTED
from tasks.runtime.proxies import SOCKS, proxy_for
from tasks.runtime.retry import retry_async
from tasks.runtime.trust import trusted_certificates

REPLY_SECONDS, LONG_REPLY_SECONDS = 180.0, 1800.0
"""Time that a request may take unless the options say it, and where one processor reads the prompt."""

CONNECT_SECONDS = 10.0
KEEP_ALIVE_SECONDS = 3.0
"""Shorter than the 5 s after which uvicorn hangs up, so that no request is sent into a closed connection."""

FIRST_TIMEOUT = 3.0
"""Seconds to wait for the first server: an error in its address must be reported soon."""

PROBE_SECONDS = 0.5
"""Seconds between two attempts to reach the first server."""


OK = 200
_PROBE_TRIES = 5
_UNSUPPORTED = 501
_BUSY = (408, 425, 429, 502, 503, 504)


class Connection:
    """A connection to one or several replicas. Several threads may use it.

    One session holds the connections to all replicas that need no SOCKS proxy. The workers of the replica pool limit
    their number.

    Raises:
        ConfigError: The key that the options name does not exist, or the environment names a proxy that is none.
    """

    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        key = options.read_key()
        proxies = {url: proxy_for(url) for url in options.urls}
        self.activity = ServerActivity(" and ".join(options.urls))
        """The activity of the servers for this process."""
        self.concurrency = options.concurrency
        """Maximum number of conversations in flight per replica."""
        self._background = EventLoopThread("judge-server")
        self._sessions, self._pool, self._replicas = self._background.run(_open(options, key, proxies, self.activity))
        self.close = weakref.finalize(self, _close, self._background, self._sessions, self._pool)
        """Close the connection. This happens at garbage collection and at the end of the process too."""
        _OPEN.add(self)

    def send(
        self,
        requests: Sequence[Request],
        arrived: Arrived = lambda _position, _reply: None,
        observer: RequestObserver | None = None,
    ) -> list[Reply]:
        """Post requests and return the replies in their order.

        Args:
            arrived: Called with each reply when it arrives, in the background thread, and always before this method
                returns or raises.
            observer: Told of each request, in the background thread.

        Raises:
            UnusableError: No server can be reached, or a reply means that no request will succeed.
            BudgetSpentError: The observer let no more requests through; the replies to the others have arrived.
            asyncio.CancelledError: The run was cancelled.
        """
        cancellation = current_cancellation()
        try:
            replies = self._background.run(self._send(requests, arrived, cancellation, observer))
        except CancelledError:
            cancellation.check()
            raise
        if is_traced():
            pairs = zip(requests, replies, strict=True)
            note_requests(self._options.urls, [(r.path, r.body, b.status, b.content, b.seconds) for r, b in pairs])
        return replies

    async def _send(
        self,
        requests: Sequence[Request],
        arrived: Arrived,
        cancellation: Cancellation,
        observer: RequestObserver | None,
    ) -> list[Reply]:
        """Send requests; stop waiting when the run is cancelled, after the callbacks of all replies that arrived."""
        loop, here = asyncio.get_running_loop(), asyncio.current_task()
        cancel = cast("asyncio.Task[object]", here).cancel
        with cancellation.on_cancel(lambda: loop.call_soon_threadsafe(cancel)):
            return await self._pool.send(requests, arrived, observer)

    def limit(self, most: int) -> None:
        """Set the number of conversations that a replica answers at once: no more are in flight from now on.

        Each reply may then take long, unless the options say how long.
        """
        self.concurrency = min(self.concurrency, most)
        self._pool.limit(most)
        if self._options.timeout is None:
            for replica in self._replicas:
                replica.timeout = ClientTimeout(total=LONG_REPLY_SECONDS, sock_connect=CONNECT_SECONDS)

    def set_simplest(self, simplest: Request) -> None:
        """Set a request that every working server answers, to tell a bad request from a bad server."""
        self._pool.simplest = simplest

    def get_all(self, path: str) -> dict[str, Reply]:
        """Get a path from every reachable replica, and return the replies by the URL of the replica.

        Args:
            path: Path below `/v1`; one that starts with a slash is relative to the server's root.

        Raises:
            UnusableError: No replica can be reached.
        """
        return self._background.run(self._get_all(path))

    def read_counters(self) -> Counters | None:
        """Return the counters of tokens of all replicas; None if one of them has none, or cannot be reached."""
        try:
            replies = self._background.run(self._get_from_all(METRICS))
        except (UnusableError, LostReplyError, CancelledError, RuntimeError):  # the last one: it was closed
            return None
        texts = [reply.content if reply.status == OK else None for reply in replies.values()]
        return add_counters(texts) if len(texts) == len(self._replicas) else None

    def ask_each(
        self, requests: Sequence[Request], is_same: Callable[[Sequence[Reply]], bool]
    ) -> dict[str, list[Reply]]:
        """Post requests to each replica, and return the replies by the URL of the replica.

        A replica that cannot be reached now, or is lost later, is asked again before it gets work, and gets none if it
        serves another model.

        Args:
            requests: Requests whose replies identify a model.
            is_same: Returns whether the replies of a replica are those of the model of this connection. Called in the
                background thread, and only after this method has returned. It must not refer to the connection, which
                would then be closed at the end of the process only.

        Raises:
            UnusableError: No replica can be reached.
        """
        return self._background.run(self._ask_each(requests, is_same))

    async def _ask_each(
        self, requests: Sequence[Request], is_same: Callable[[Sequence[Reply]], bool]
    ) -> dict[str, list[Reply]]:
        concurrency = self.concurrency  # the pool keeps `check`, which must not keep the connection

        async def ask(replica: Replica) -> list[Reply]:
            limit = asyncio.Semaphore(concurrency)
            posts = [asyncio.ensure_future(_post_patiently(replica, request, limit)) for request in requests]
            try:
                return await asyncio.gather(*posts)
            finally:  # one that fails leaves the others running, which outlive the session
                for post in posts:
                    post.cancel()
                await asyncio.gather(*posts, return_exceptions=True)

        async def check(replica: Replica) -> str | None:
            return None if is_same(await ask(replica)) else "it serves another model than at the start of the run"

        results = await asyncio.gather(*map(ask, self._replicas), return_exceptions=True)
        replies: dict[str, list[Reply]] = {}
        for replica, result in zip(self._replicas, results, strict=True):
            if isinstance(result, UnreachableError | LostReplyError):
                self._pool.suspend(replica, str(result))
            elif isinstance(result, BaseException):
                raise result
            else:
                replies[replica.url] = result
        if not replies:
            raise UnusableError(f"{' and '.join(self._options.urls)} cannot be reached. {results[0]}")
        self._pool.check_returning = check
        return replies

    async def _get_all(self, path: str) -> dict[str, Reply]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + min(FIRST_TIMEOUT, self._options.unavailable_timeout)

        def pause_after(error: Exception, _attempt: int) -> float | None:
            return PROBE_SECONDS if isinstance(error, UnusableError) and loop.time() < deadline else None

        return await retry_async(lambda: self._get_from_all(path), pause_after)

    async def _get_from_all(self, path: str) -> dict[str, Reply]:
        results = await asyncio.gather(*(replica.get(path) for replica in self._replicas), return_exceptions=True)
        replies = {
            replica.url: result
            for replica, result in zip(self._replicas, results, strict=True)
            if isinstance(result, Reply)
        }
        if replies:
            return replies
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, UnreachableError | LostReplyError):
                raise result
        names = " and ".join(replica.url for replica in self._replicas)
        raise UnusableError(f"{names} cannot be reached. {results[0]}. Start the server, or check its URL")


async def _post_patiently(replica: Replica, request: Request, limit: asyncio.Semaphore) -> Reply:
    """Post a request; try again while the server is busy, and once after another error of the server."""
    for attempt in range(1, _PROBE_TRIES + 1):
        async with limit:
            reply = await replica.post(request.path, request.body)
        is_error = reply.status >= 500 and reply.status not in (*_BUSY, _UNSUPPORTED) and attempt == 1
        if attempt == _PROBE_TRIES or not (is_error or reply.status in _BUSY):
            return reply
        await asyncio.sleep(backoff_seconds(attempt, reply.retry_after))
    raise AssertionError("unreachable")


async def _open(
    options: ServerOptions, key: str | None, proxies: Mapping[str, str | None], activity: ServerActivity
) -> tuple[list[ClientSession], ReplicaPool, list[Replica]]:
    headers = {"Content-Type": "application/json", "User-Agent": "rag-assay", "Accept-Encoding": ACCEPTED}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    by_proxy: dict[str | None, ClientSession] = {}

    def session_for(proxy: str | None) -> ClientSession:
        """Return the session for a SOCKS proxy, or the one for everything else."""
        if proxy not in by_proxy:
            by_proxy[proxy] = ClientSession(
                headers=headers,
                connector=_connector(proxy),
                timeout=ClientTimeout(total=options.timeout or REPLY_SECONDS, sock_connect=CONNECT_SECONDS),
                auto_decompress=False,
            )
        return by_proxy[proxy]

    replicas = []
    for url, proxy in proxies.items():
        is_socks = proxy is not None and proxy.startswith(SOCKS)
        session = session_for(proxy if is_socks else None)
        replicas.append(Replica(url, session, key, options.max_reply_bytes, None if is_socks else proxy))
    limits = RetryLimits(options.max_retries, options.unavailable_timeout)
    pool = ReplicaPool(replicas, options.concurrency, options.peak_in_flight, limits, activity)
    return list(by_proxy.values()), pool, replicas


def _connector(socks_proxy: str | None) -> TCPConnector:
    if socks_proxy is None:
        return TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS, ssl=trusted_certificates())
    from aiohttp_socks import ProxyConnector  # noqa: PLC0415 seldom needed

    url = socks_proxy.replace("socks5h://", "socks5://", 1)
    connector: TCPConnector = ProxyConnector.from_url(
        url, rdns=True, limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS, ssl=trusted_certificates()
    )
    return connector


def _close(background: EventLoopThread, sessions: Sequence[ClientSession], pool: ReplicaPool) -> None:
    background.close(_end(sessions, pool))


async def _end(sessions: Sequence[ClientSession], pool: ReplicaPool) -> None:
    await pool.close()
    for session in sessions:
        await session.close()


_OPEN: "weakref.WeakSet[Connection]" = weakref.WeakSet()
_INHERITED: list[Connection] = []


def _retain_inherited() -> None:
    """Retain the connections of the parent process after a fork: their finalizers would close its sockets."""
    _INHERITED.extend(_OPEN)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_retain_inherited)
