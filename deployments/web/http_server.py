"""Serve an application over HTTP with a bounded number of connections, which must all make progress.

A connection whose request is not complete holds no thread. When all connections are taken, a new one takes the place
of the one that has waited longest for its request, so that idle clients keep nobody out.
"""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from deployments.web.http_guard import App
from metric_core.errors import ConfigError

if TYPE_CHECKING:
    import h11

MOST_CONNECTIONS = 64
SECONDS = 30.0
"""Longest time in which a request must arrive, and in which a client must read more of its response."""

_END_SECONDS = 5
"""Seconds that responses may take after the server was asked to end."""


class _Connections:
    """The open connections of a server.

    Args:
        most: Maximum number.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: dict[_Connection, None] = {}
        self._answered: set[_Connection] = set()

    def wait(self, connection: "_Connection") -> None:
        """Note that a connection waits for a request; if there are too many, abort the one that has waited longest."""
        self._answered.discard(connection)
        self._waiting[connection] = None
        if len(self._waiting) + len(self._answered) > self._most:
            next(iter(self._waiting)).abort()

    def answer(self, connection: "_Connection") -> None:
        """Note that the request of a connection is complete."""
        self._waiting.pop(connection, None)
        self._answered.add(connection)

    def remove(self, connection: "_Connection") -> None:
        """Note that a connection is closed."""
        self._waiting.pop(connection, None)
        self._answered.discard(connection)


class _Deadline:
    """A time after which a connection is aborted.

    Args:
        abort: Function that aborts it.
        seconds: Seconds from `start`.
    """

    def __init__(self, abort: Callable[[], None], seconds: float) -> None:
        self._abort = abort
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start; if it was started, from the beginning."""
        self.stop()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._abort)

    def stop(self) -> None:
        """Stop, if it was started."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Connection(H11Protocol):
    """A connection that is aborted if the client sends its request, or reads the response, too slowly.

    Args:
        room: The open connections.
        seconds: Longest time without progress.
        **protocol: Arguments of uvicorn's protocol.
    """

    def __init__(self, room: _Connections, seconds: float, **protocol: Any) -> None:
        super().__init__(**protocol)
        self._room = room
        self._request = _Deadline(self.abort, seconds)
        self._reading = _Deadline(self.abort, seconds)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give up the place."""
        self._request.stop()
        self._reading.stop()
        self._room.remove(self)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Begin to answer if the request is complete."""
        super().handle_events()
        if self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete:
            self._request.stop()
            self._room.answer(self)

    def handle_websocket_upgrade(self, event: "h11.Request") -> None:
        """Hand the connection over to the protocol of WebSockets, which checks whether the client is there."""
        self._request.stop()
        self._room.remove(self)
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, which may have arrived already."""
        self._wait()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Begin to wait for the client, which has not read what was sent."""
        super().pause_writing()
        self._reading.start()

    def resume_writing(self) -> None:
        """Send more."""
        super().resume_writing()
        self._reading.stop()

    def abort(self) -> None:
        """Close at once, without a response."""
        self._room.remove(self)
        self.transport.abort()

    def _wait(self) -> None:
        self._request.start()
        self._room.wait(self)


class HttpServer:
    """A server that listens; `serve` answers requests.

    Args:
        listener: Socket that listens.
        connections: Maximum number of connections, WebSockets not counted.
        seconds: Longest time in which a request must arrive, and in which a client must read more of its response.
        whole: True serves WebSockets and the start and end of the application too.
    """

    def __init__(
        self,
        listener: socket.socket,
        app: App,
        connections: int = MOST_CONNECTIONS,
        seconds: float = SECONDS,
        *,
        whole: bool = False,
    ) -> None:
        self._listener = listener
        self._server = uvicorn.Server(
            uvicorn.Config(
                cast("Any", app),
                http=cast("Any", partial(_Connection, _Connections(connections), seconds)),
                ws="websockets-sansio" if whole else "none",
                lifespan="on" if whole else "off",
                log_level="warning" if whole else "error",
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_END_SECONDS,
            )
        )

    @property
    def port(self) -> int:
        """The port."""
        return int(self._listener.getsockname()[1])

    def serve(self) -> None:
        """Serve until the process is interrupted, or `stop` is called in another thread."""
        self._server.run(sockets=[self._listener])

    @property
    def has_started(self) -> bool:
        """Whether requests are answered."""
        return self._server.started

    async def serve_here(self) -> None:
        """Serve in this event loop as `serve` does; return at once, after a line in the log, if the start fails."""
        with suppress(SystemExit):
            await self._server.serve(sockets=[self._listener])

    def stop(self) -> None:
        """End `serve` or `serve_here`."""
        self._server.should_exit = True


@contextmanager
def open_server(host: str, port: int, make_app: Callable[[int], App], **bounds: Any) -> Iterator[HttpServer]:
    """Yield a server that listens; its caller calls `serve`.

    Args:
        host: Address or name to listen at.
        port: Port to listen at; 0 for a free one.
        make_app: Function that returns the application for the port.
        **bounds: Bounds of `HttpServer`.

    Raises:
        ConfigError: The address and port cannot be used.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        listener = socket.create_server((str(address[0]), port), family=family)
    except OSError as error:
        raise ConfigError(
            f"the port {port} of {host} cannot be used: {error.strerror or error}. Name another one with --port"
        ) from error
    with listener:
        yield HttpServer(listener, make_app(int(listener.getsockname()[1])), **bounds)
