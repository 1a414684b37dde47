"""Serves the receiver of traces on the loopback interface, in this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import uvicorn

from deployments.trace_receiver.receiver import make_app
from tests.waiting import wait_until


@contextmanager
def serve_receiver(folder: Path) -> Iterator[str]:
    """Serve while the context is entered, and yield the address for traces."""
    server = uvicorn.Server(uvicorn.Config(make_app(folder), host="127.0.0.1", port=0, log_level="warning"))
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started, "the receiver")
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1/traces"
    server.should_exit = True
    thread.join()
