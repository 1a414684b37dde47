"""Wrap Prefect's application: report the activity of the server, and retry requests that met a busy database."""

import json
import time
from collections.abc import Callable, Mapping, MutableMapping

from deployments.local_server.local_server import IDENTITY_PATH, USE
from deployments.web.http_guard import App, Message, Receive, Send
from tasks.runtime.retry import retry_async

HEALTH_PATHS = frozenset({"/api/health", "/api/ready"})
BUSY = 503
PAUSES = (0.02, 0.05, 0.1, 0.2, 0.4)
"""Seconds to wait before each further attempt of a request that met a locked database."""


class Activity:
    """An application that records when it was last used, and reports that with its identity.

    An open connection is use: a run keeps a web socket open while it computes, however long that takes. Health checks
    are not, nor are queries of the identity, unless the caller announces that it will use the server.

    Args:
        app: Application to call.
        identity: Fields to report besides the activity.
        clock: Monotonic clock, in seconds.
    """

    def __init__(self, app: App, identity: Mapping[str, object], clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._identity = identity
        self._clock = clock
        self._open = 0
        self._closed = False
        self.touch()

    def touch(self) -> None:
        """Record a use at this moment."""
        self._last = self._clock()

    def close_if_idle(self, seconds: float) -> bool:
        """Return whether the server has been idle long enough to close; if so, it stops reporting its identity.

        Args:
            seconds: Shortest idle time after which the server closes.
        """
        self._closed = self._closed or self.idle_seconds >= seconds
        return self._closed

    @property
    def open_connections(self) -> int:
        """Number of open requests and web sockets."""
        return self._open

    @property
    def idle_seconds(self) -> float:
        """Seconds since the last use; 0 during one."""
        return 0.0 if self._open else self._clock() - self._last

    async def __call__(self, scope: MutableMapping[str, object], receive: Receive, send: Send) -> None:
        """Handle a request: report the identity, or pass the request on and count it."""
        if scope["type"] == "lifespan" or scope["path"] in HEALTH_PATHS:
            await self._app(scope, receive, send)
        elif scope["type"] == "http" and scope["path"] == IDENTITY_PATH:
            if scope["query_string"] == USE:
                self.touch()
            await self._identify(send)
        else:
            await self._count(scope, receive, send)

    async def _count(self, scope: MutableMapping[str, object], receive: Receive, send: Send) -> None:
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


class _BusyError(Exception):
    """The application answered that it is busy.

    Args:
        messages: Messages of the response.
        error: Error that the application raised after the response, if any.
    """

    def __init__(self, messages: list[Message], error: Exception | None) -> None:
        super().__init__()
        self.messages = messages
        self.error = error


class RetryBusy:
    """An application that repeats requests that Prefect answers with 503, as it does when two writers meet in SQLite.

    Nothing was written then, and Prefect's client would send the same request again, but only after about two seconds;
    the database is free again after milliseconds.

    Args:
        app: Application to call.
        pauses: Seconds to wait before each further attempt. The response to the last attempt is final.
    """

    def __init__(self, app: App, pauses: tuple[float, ...] = PAUSES) -> None:
        self._app = app
        self._pauses = pauses

    async def __call__(self, scope: MutableMapping[str, object], receive: Receive, send: Send) -> None:
        """Handle a request: repeat it until the response is not 503 or the pauses are used up."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = await _read_body(receive)

        def pause_after(error: Exception, attempt: int) -> float | None:
            return self._pauses[attempt - 1] if isinstance(error, _BusyError) and attempt <= len(self._pauses) else None

        try:
            await retry_async(lambda: self._attempt(scope, _replay(body, receive), send), pause_after)
        except _BusyError as busy:
            for message in busy.messages:
                await send(message)
            if busy.error is not None:
                raise busy.error from None

    async def _attempt(self, scope: MutableMapping[str, object], receive: Receive, send: Send) -> None:
        """Send the response on unless it is 503.

        Raises:
            _BusyError: The response is 503.
        """
        withheld: list[Message] = []

        async def send_unless_busy(message: Message) -> None:
            if withheld or (message["type"] == "http.response.start" and message["status"] == BUSY):
                withheld.append(message)
            else:
                await send(message)

        raised: Exception | None = None
        try:
            await self._app(dict(scope), receive, send_unless_busy)
        except Exception as error:
            if not withheld:
                raise
            raised = error  # Prefect raises the error of the database again after its response 503
        if withheld:
            raise _BusyError(withheld, raised)


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
