"""Serves the receiver of traces on the loopback interface, in this process."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from deployments.trace_receiver.receiver import open_receiver
from deployments.trace_receiver.trace_files import TraceFiles
from tests.deployments.serving import serve_here


@contextmanager
def serve_receiver(folder: Path, max_bytes: int = 1024**3, names: Collection[str] = ()) -> Iterator[str]:
    """Serve while the context is entered, and yield the address for traces."""
    with open_receiver(TraceFiles(folder, max_bytes), "127.0.0.1", 0, names) as server, serve_here(server) as url:
        yield f"{url}/v1/traces"
