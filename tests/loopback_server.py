"""An HTTP server on the loopback interface that runs while its context is entered."""

from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any, Self


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512  # all connections of a client are opened at once


class QuietHandler(BaseHTTPRequestHandler):
    """A handler that logs nothing, and sends a body with its length."""

    def read_body(self) -> bytes:
        """Return the body of the request."""
        return self.rfile.read(int(self.headers["Content-Length"]))

    def send(
        self, status: int, body: bytes = b"", content_type: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a reply."""
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        if content_type is not None:
            self.send_header("Content-Type", content_type)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 the name in the base class
        """Log nothing."""


class LoopbackServer:
    """A server on a free port.

    Args:
        handler: Class that answers requests.
    """

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def origin(self) -> str:
        """The URL of the server, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
