"""Record which flow runs a process computes, so that those of a killed process end as Crashed.

Nothing on a Prefect server notices that a process has gone that no worker started: its runs would stay Running for
ever. So the process holds a lock for each of them, which the system releases when the process ends, however that
happens. The next command on the same machine ends the runs whose lock is free.
"""

import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from filelock import FileLock, Timeout

from tasks.runtime.atomic_files import create_private_folder
from tasks.runtime.home import assay_home

_SUFFIX = ".run"
_LONGEST = timedelta(days=30)
"""Age at which the record of a run that the server does not know is removed: it may be on another server."""

_MESSAGE = "its process was killed, or its machine stopped; answers and finished stage tables are kept"


@contextmanager
def record_process(run_id: UUID) -> Iterator[None]:
    """Record that this process computes a flow run until the block ends.

    A record that cannot be written causes no error: a run that is killed then stays Running.
    """
    path = _folder() / f"{run_id}{_SUFFIX}"
    lock = FileLock(path.with_suffix(".new"))
    try:
        create_private_folder(path.parent)
        lock.acquire()
        Path(lock.lock_file).replace(path)  # a record is complete, and its lock is held, from the beginning
    except OSError:
        lock.release()
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        lock.release()


def end_killed_runs() -> int:
    """End the flow runs of killed processes of this machine as Crashed, and return their number.

    Runs that the current Prefect server does not know, or lets this user not end, are left alone.

    Raises:
        Exception: The server does not answer.
    """
    folder = _folder()
    dead = [(path, lock) for path in folder.glob(f"*{_SUFFIX}") if (lock := _take(path)) is not None]
    ended = 0
    try:
        for path, _ in dead:
            is_known, was_running = _end(path.stem)
            ended += was_running
            if is_known or _age(path) > _LONGEST:
                path.unlink(missing_ok=True)
    finally:
        for _, lock in dead:
            lock.release()
    return ended


def _folder() -> Path:
    # Locks of other machines that share the folder need not be seen here.
    return assay_home() / "prefect" / "runs" / (platform.node() or "localhost")


def _take(path: Path) -> FileLock | None:
    """Take the lock of a record; return None if a process holds it, or if another command has taken it."""
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except (Timeout, OSError):
        return None
    return lock


def _end(run_id: str) -> tuple[bool, bool]:
    """End a flow run as Crashed, and return whether the server knows it, and whether it was not over."""
    from httpx import HTTPStatusError  # noqa: PLC0415 rarely needed, and slow to import
    from prefect.client.orchestration import get_client  # noqa: PLC0415
    from prefect.exceptions import ObjectNotFound  # noqa: PLC0415
    from prefect.states import Crashed  # noqa: PLC0415

    with get_client(sync_client=True) as client:
        try:
            run = client.read_flow_run(UUID(run_id))
            if run.state is not None and run.state.is_final():
                return True, False
            crashed: Any = Crashed(message=_MESSAGE)
            client.set_flow_run_state(run.id, crashed, force=True)
        except (ObjectNotFound, HTTPStatusError, ValueError):  # or no id
            return False, False
        return True, True


def _age(path: Path) -> timedelta:
    return datetime.now(UTC) - datetime.fromtimestamp(path.stat().st_mtime, UTC)
