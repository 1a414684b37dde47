"""Serve Prefect's application under uvicorn until stopped or idle: the process that `LocalServer` starts."""

import argparse
import asyncio
import os
import platform
import signal
import socket
import sys
import time
from importlib.metadata import version
from pathlib import Path
from secrets import token_hex, token_urlsafe

from filelock import FileLock, Timeout

from deployments.local_server.local_server import ALREADY_RUNNING, LocalServer, ServerRecord
from deployments.local_server.middleware import Activity, RetryBusy
from deployments.web.http_guard import Guard
from tasks.runtime.start_up import gc_paused

DONE = 0
FAILED = 3
MOST_CONNECTIONS = 500
"""Maximum number of connections, half of the files that a process may usually have open."""

LOCK_SECONDS = 10.0
LOOPBACK = "127.0.0.1"


def main() -> int:
    """Serve until stopped or idle for long enough, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m deployments.local_server.server_process", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of the server's record, database and log")
    parser.add_argument("--idle-minutes", type=float, default=30.0, help="end after so many minutes without a request")
    arguments = parser.parse_args()
    return serve(LocalServer(arguments.folder, arguments.idle_minutes))


def serve(local: LocalServer) -> int:
    """Serve until idle for long enough, unless another server is running in the folder, which PREFECT_HOME names too.

    Returns:
        The exit code of the process.
    """
    lock = FileLock(local.lock)
    if not _take(lock, local):
        return ALREADY_RUNNING
    try:
        local.record_file.unlink(missing_ok=True)
        # uvicorn raises the signal again after its shutdown, and the lines below must still run.
        signal.signal(signal.SIGTERM, lambda *_: None)
        # asyncio turns Nagle's algorithm, 40 ms per request, off only on sockets that are declared as TCP.
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
            listener.bind((LOOPBACK, 0))
            return asyncio.run(_serve(local, listener))
    finally:
        local.record_file.unlink(missing_ok=True)
        lock.release()


def _take(lock: FileLock, local: LocalServer) -> bool:
    """Take the lock, waiting for a server that is ending; return False if a server answers."""
    deadline = time.monotonic() + LOCK_SECONDS
    while time.monotonic() < deadline:
        try:
            lock.acquire(timeout=0.2)
        except Timeout:
            record = local.read()
            if record is not None and record.query() is not None:
                return False
        else:
            return True
    return False


async def _serve(local: LocalServer, listener: socket.socket) -> int:
    idle_seconds = local.idle_minutes * 60
    with gc_paused():
        credentials = f"assay:{token_urlsafe(32)}"
        os.environ["PREFECT_SERVER_API_AUTH_STRING"] = credentials  # Prefect asks for it on WebSockets
        from prefect.server.api.server import create_app  # noqa: PLC0415 takes seconds

        from deployments.web.http_server import HttpServer  # noqa: PLC0415 only once the lock is held

        port = listener.getsockname()[1]
        record = ServerRecord(
            pid=os.getpid(),
            host=platform.node(),
            version=version("prefect"),
            api_url=f"http://{LOOPBACK}:{port}/api",
            token=token_hex(16),
            credentials=credentials,
        )
        activity = Activity(RetryBusy(create_app()), {"token": record.token, "pid": record.pid})
        guarded = Guard(activity, host=LOOPBACK, port=port, credentials=credentials)
        server = HttpServer(listener, guarded, MOST_CONNECTIONS, whole=True)
        serving = asyncio.create_task(server.serve_here())
        while not server.has_started and not serving.done():
            await asyncio.sleep(0.02)
        if not server.has_started:
            return FAILED
        activity.touch()
        local.write(record)
    while not serving.done():
        if activity.close_if_idle(idle_seconds):
            server.stop()
        await asyncio.wait({serving}, timeout=min(max(idle_seconds - activity.idle_seconds, 0.1), 60.0))
    await serving
    return DONE


if __name__ == "__main__":
    sys.exit(main())
