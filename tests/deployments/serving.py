"""Serves a server that listens on the loopback interface, in a thread of this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

from deployments.web.http_server import HttpServer
from tests.waiting import DEAD_SECONDS


@contextmanager
def serve_here(server: HttpServer) -> Iterator[str]:
    """Serve while the context is entered, and yield the address; fail if the server does not end."""
    thread = Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.stop()
        thread.join(DEAD_SECONDS)
        assert not thread.is_alive()
