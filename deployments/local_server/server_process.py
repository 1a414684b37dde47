"""The process of the kept server: Prefect's application under uvicorn, until it is told to stop or is left idle."""

import asyncio
import gc
import os
import platform
import signal
import socket
import time
from collections.abc import Coroutine
from contextlib import suppress
from importlib.metadata import version
from secrets import token_hex

from filelock import FileLock, Timeout

from deployments.local_server.middleware import Activity, RetryBusy
from deployments.local_server.server_record import ServerFolder, ServerRecord, ask, read_server_record

DONE = 0
FAILED = 3
ALREADY_KEPT = 75
"""Exit code of a process that found another server in its folder."""

LOCK_SECONDS = 10.0
LOOPBACK = "127.0.0.1"


def serve(folder: ServerFolder, idle_seconds: float) -> int:
    """Serves, unless the folder has a server already.

    Args:
        folder: where the record, lock and database lie; PREFECT_HOME has to be the same.
        idle_seconds: ends after so long without use.

    Returns:
        The exit code of the process.
    """
    lock = FileLock(folder.lock)
    if not _take(lock, folder):
        return ALREADY_KEPT
    try:
        folder.record.unlink(missing_ok=True)
        # uvicorn raises the signal once more when it has shut down; the lines after it are still to run
        signal.signal(signal.SIGTERM, lambda *_: None)
        # asyncio turns Nagle's algorithm off only on sockets that say they are TCP: 40 ms a request
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
            listener.bind((LOOPBACK, 0))
            return asyncio.run(_serve(folder, listener, idle_seconds))
    finally:
        folder.record.unlink(missing_ok=True)
        lock.release()


def _take(lock: FileLock, folder: ServerFolder) -> bool:
    """Waits for a server that is just ending, not for one that answers."""
    deadline = time.monotonic() + LOCK_SECONDS
    while time.monotonic() < deadline:
        try:
            lock.acquire(timeout=0.2)
        except Timeout:
            record = read_server_record(folder)
            if record is not None and ask(record) is not None:
                return False
        else:
            return True
    return False


async def _serve(folder: ServerFolder, listener: socket.socket, idle_seconds: float) -> int:
    gc.disable()  # 400,000 objects come with the imports and stay: a seventh of the start goes into looking at them
    import uvicorn  # noqa: PLC0415 only after the lock is ours
    from prefect.server.api.server import create_app  # noqa: PLC0415 takes seconds
    from starlette.middleware.trustedhost import TrustedHostMiddleware  # noqa: PLC0415

    port = listener.getsockname()[1]
    record = ServerRecord(
        pid=os.getpid(),
        host=platform.node(),
        version=version("prefect"),
        api_url=f"http://{LOOPBACK}:{port}/api",
        token=token_hex(16),
    )
    activity = Activity(RetryBusy(create_app()), {"token": record.token, "pid": record.pid})
    guarded = TrustedHostMiddleware(activity, allowed_hosts=[LOOPBACK, "localhost"])
    server = uvicorn.Server(uvicorn.Config(guarded, log_level="warning", lifespan="on", timeout_graceful_shutdown=5))
    serving = asyncio.create_task(_until_exit(server.serve(sockets=[listener])))
    while not server.started and not serving.done():
        await asyncio.sleep(0.02)
    if not server.started:
        return FAILED
    activity.touch()
    record.write(folder)
    gc.enable()
    gc.freeze()
    while not serving.done():
        server.should_exit = server.should_exit or activity.close_if_idle(idle_seconds)
        await asyncio.wait({serving}, timeout=min(max(idle_seconds - activity.idle_seconds, 0.1), 60.0))
    await serving
    return DONE


async def _until_exit(serving: Coroutine[None, None, None]) -> None:
    with suppress(SystemExit):  # uvicorn's word for an application that did not start; the log says why
        await serving
