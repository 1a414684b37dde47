"""The way to the servers for callers that are not asynchronous: a background thread, a session, a fleet."""

import asyncio
import os
import weakref
from collections.abc import Sequence
from concurrent.futures import CancelledError
from typing import cast

from aiohttp import ClientSession, ClientTimeout, TCPConnector

from tasks.model_clients.event_loop import EventLoopThread
from tasks.model_clients.replica import LostReplyError, Replica, Reply, UnreachableError
from tasks.model_clients.replica_pool import Arrived, Patience, ReplicaPool, Request, UnusableError
from tasks.options.server_options import ServerOptions
from tasks.runtime import cancellation as interruption
from tasks.runtime.cancellation import Cancellation
from tasks.runtime.retry import retry_async

CONNECT_SECONDS = 10.0
KEEP_ALIVE_SECONDS = 3.0
"""Shorter than the 5 s after which uvicorn hangs up, so that no request is sent into a closed connection."""

FIRST_TIMEOUT = 3.0
"""Seconds to wait for the first server: an error in its address must be reported soon."""

PROBE_SECONDS = 0.5
"""Seconds between two attempts to reach the first server."""


class Connection:
    """A connection to one or several replicas. May be used from several threads.

    One session with one pool holds the connections of all replicas; the workers of the fleet bound their number.

    Args:
        options: where the servers are.

    Raises:
        ConfigError: the key is not where the options say.
    """

    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        key = options.read_key()
        self._background = EventLoopThread("judge-server")
        self._session, self._fleet, self._replicas = self._background.run(_open(options, key))
        self.close = weakref.finalize(self, _close, self._background, self._session, self._fleet)
        """Closes the connection; happens by itself when it is no longer used, and at the end of the process."""
        _OPEN.add(self)

    def send(self, requests: Sequence[Request], arrived: Arrived = lambda _position, _reply: None) -> list[Reply]:
        """Posts requests and returns the replies in their order.

        Args:
            requests: what to post.
            arrived: hears of each reply at once, in the background thread; it has heard of all that came when this
                returns or raises.

        Raises:
            UnusableError: no server can be reached, or what came back says that no request will succeed.
            asyncio.CancelledError: the run was interrupted.
        """
        interrupted = interruption.current_cancellation()
        try:
            return self._background.run(self._send(requests, arrived, interrupted))
        except CancelledError:
            interrupted.check()
            raise

    async def _send(self, requests: Sequence[Request], arrived: Arrived, interrupted: Cancellation) -> list[Reply]:
        """Sends; waits no longer when the run is interrupted, after all that has come was told."""
        loop, here = asyncio.get_running_loop(), asyncio.current_task()
        cancel = cast("asyncio.Task[object]", here).cancel
        with interrupted.heard_by(lambda: loop.call_soon_threadsafe(cancel)):
            return await self._fleet.send(requests, arrived)

    def expect(self, simplest: Request) -> None:
        """Names a request that a server in order answers, so that a bad question can be told from a bad server."""
        self._fleet.simplest = simplest

    def look(self, path: str) -> dict[str, Reply]:
        """Gets a path of every replica that can be reached, by the replica's URL.

        Raises:
            UnusableError: none can be reached.
        """
        return self._background.run(self._look(path))

    async def _look(self, path: str) -> dict[str, Reply]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + min(FIRST_TIMEOUT, self._options.unavailable_timeout)

        def pause_after(error: Exception, _attempt: int) -> float | None:
            return PROBE_SECONDS if isinstance(error, UnusableError) and loop.time() < deadline else None

        return await retry_async(lambda: self._get_from_all(path), pause_after)

    async def _get_from_all(self, path: str) -> dict[str, Reply]:
        results = await asyncio.gather(*(replica.get(path) for replica in self._replicas), return_exceptions=True)
        found = {
            replica.url: result
            for replica, result in zip(self._replicas, results, strict=True)
            if isinstance(result, Reply)
        }
        if found:
            return found
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, UnreachableError | LostReplyError):
                raise result
        names = " and ".join(replica.url for replica in self._replicas)
        raise UnusableError(f"{names} cannot be reached. {results[0]}. Start the server, or check its URL")


async def _open(options: ServerOptions, key: str | None) -> tuple[ClientSession, ReplicaPool, list[Replica]]:
    headers = {"Content-Type": "application/json", "User-Agent": "rag-assay"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    session = ClientSession(
        headers=headers,
        connector=TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS),
        timeout=ClientTimeout(total=options.timeout, sock_connect=CONNECT_SECONDS),
    )
    replicas = [Replica(url, session, key) for url in options.urls]
    fleet = ReplicaPool(replicas, options.concurrency, Patience(options.max_retries, options.unavailable_timeout))
    return session, fleet, replicas


def _close(background: EventLoopThread, session: ClientSession, fleet: ReplicaPool) -> None:
    background.close(_end(session, fleet))


async def _end(session: ClientSession, fleet: ReplicaPool) -> None:
    await fleet.close()
    await session.close()


_OPEN: "weakref.WeakSet[Connection]" = weakref.WeakSet()
_INHERITED: list[Connection] = []


def _leave_alone() -> None:
    """Keeps what was open when this process was forked: throwing it away would hang up in the parent's name."""
    _INHERITED.extend(_OPEN)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_alone)
