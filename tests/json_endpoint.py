"""An HTTP endpoint that accepts JSON, such as an index or a webhook; tests choose its replies."""

import json
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from types import TracebackType
from typing import Any, Self

Reply = Callable[[Mapping[str, Any], int], tuple[int, Any]]
"""Maps the content and the number of times it was sent before to a status and a JSON value or raw bytes."""


def _reply_nothing(_content: Mapping[str, Any], _before: int) -> tuple[int, Any]:
    return 204, b""


class JsonEndpoint:
    """An endpoint that serves while its context is entered.

    Args:
        reply: Function that returns the reply to a request; by default, replies are empty.
    """

    def __init__(self, reply: Reply = _reply_nothing) -> None:
        self.received: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str]] = []
        """Method and path of each request."""
        self.keys: set[str | None] = set()
        lock = Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def do_PATCH(self) -> None:
                self.do_POST()

            def do_GET(self) -> None:
                self._answer({"path": self.path})

            def _answer(self, content: dict[str, Any]) -> None:
                with lock:
                    server.asked.append((self.command, self.path))
                    before = server.received.count(content)
                    server.received.append(content)
                    server.keys.add(self.headers["Authorization"])
                status, replied = reply(content, before)
                body = replied if isinstance(replied, bytes) else json.dumps(replied).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 the name in the base class
                del format, args

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/here"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
