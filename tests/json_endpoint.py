"""An HTTP endpoint that accepts JSON, such as an index or a webhook; tests choose its replies."""

import json
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from threading import Lock
from typing import Any

from tests.loopback_server import LoopbackServer, QuietHandler

Reply = Callable[[Mapping[str, Any], int], tuple[Any, ...]]
"""Maps the content and the number of times it was sent before to a status, a JSON value or raw bytes, and headers."""


def _reply_nothing(_content: Mapping[str, Any], _before: int) -> tuple[int, Any]:
    return 204, b""


class JsonEndpoint(LoopbackServer):
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

        class Handler(QuietHandler):
            def do_POST(self) -> None:
                self._answer(json.loads(self.read_body()))

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
                status, replied, *headers = server.answer(content, before, self)
                body = replied if isinstance(replied, bytes) else json.dumps(replied).encode()
                self.send(status, body, headers=dict(*headers))

        self._reply = reply

        super().__init__(Handler)

    def answer(self, content: Any, before: int, request: BaseHTTPRequestHandler) -> tuple[Any, ...]:
        """Return status, content and, if there are some, headers of the reply to a request."""
        del request
        return self._reply(content, before)

    @property
    def url(self) -> str:
        return f"{self.origin}/here"
