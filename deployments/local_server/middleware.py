"""What the kept server puts around Prefect's application: a look at how busy it is, and patience with its database."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

from deployments.local_server.server_record import IDENTITY_PATH, USE

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

HEALTH_PATHS = frozenset({"/api/health", "/api/ready"})
BUSY = 503
PAUSES = (0.02, 0.05, 0.1, 0.2, 0.4)
"""Seconds before each further try of a request that met a locked database."""


class Activity:
    """Knows when the server was last used, and tells it, with the server's identity, to whoever asks.

    An open connection is use: a run keeps a web socket open while it computes, however long that takes. Health checks
    are none, nor is asking, unless the asker means to use the server.

    Args:
        app: the application.
        identity: what to answer besides the activity.
        clock: seconds that only grow.
    """

    def __init__(self, app: App, identity: Mapping[str, Any], clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._identity = identity
        self._clock = clock
        self._open = 0
        self._closed = False
        self.touch()

    def touch(self) -> None:
        """Counts as use, now."""
        self._last = self._clock()

    def close_if_idle(self, seconds: float) -> bool:
        """Whether the last use is so long ago; from then on nobody is told that the server is there."""
        self._closed = self._closed or self.idle_seconds >= seconds
        return self._closed

    @property
    def open_connections(self) -> int:
        """Requests and web sockets open now."""
        return self._open

    @property
    def idle_seconds(self) -> float:
        """Seconds since the last use; 0 during one."""
        return 0.0 if self._open else self._clock() - self._last

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answers for itself, or passes on and counts."""
        if scope["type"] == "lifespan" or scope["path"] in HEALTH_PATHS:
            await self._app(scope, receive, send)
        elif scope["type"] == "http" and scope["path"] == IDENTITY_PATH:
            if scope["query_string"] == USE:
                self.touch()
            await self._identify(send)
        else:
            await self._count(scope, receive, send)

    async def _count(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        self._open += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open -= 1
            self.touch()

    async def _identify(self, send: Send) -> None:
        activity = {"open_connections": self._open, "idle_seconds": round(self.idle_seconds, 1)}
        body = json.dumps({} if self._closed else {**self._identity, **activity}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class RetryBusy:
    """Repeats a request that Prefect answers with 503, as it does when two writers meet in SQLite.

    Nothing was written then, and Prefect's client would send the same request again, but only after some two seconds;
    the database is free again after milliseconds.

    Args:
        app: the application.
        pauses: seconds to wait before each further try; the answer to the last try stands.
    """

    def __init__(self, app: App, pauses: tuple[float, ...] = PAUSES) -> None:
        self._app = app
        self._pauses = pauses

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Tries until the answer is another one or the pauses are used up."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = await _read_body(receive)
        for pause in self._pauses:
            if not await self._is_busy(scope, _replay(body, receive), send):
                return
            await asyncio.sleep(pause)
        await self._app(scope, _replay(body, receive), send)

    async def _is_busy(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> bool:
        busy = False

        async def send_unless_busy(message: Message) -> None:
            nonlocal busy
            busy = busy or (message["type"] == "http.response.start" and message["status"] == BUSY)
            if not busy:
                await send(message)

        try:
            await self._app(dict(scope), receive, send_unless_busy)
        except Exception:
            if not busy:  # Prefect raises the database's error again after having answered 503
                raise
        return busy


async def _read_body(receive: Receive) -> list[Message]:
    messages = [await receive()]
    while messages[-1].get("more_body"):
        messages.append(await receive())
    return messages


def _replay(messages: list[Message], receive: Receive) -> Receive:
    rest = iter(messages)

    async def next_message() -> Message:
        for message in rest:
            return message
        return await receive()

    return next_message
