"""Record which runs are using a table store, so that pruning keeps the files they need."""

import json
import logging
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from threading import Event

import fsspec

from metric_core.errors import AssayError, StorageError
from tasks.rows.table_files import RUNNING, atomic_fs_write, filesystem, storage_errors, translate_errors
from tasks.runtime.threads import start_thread

HEARTBEAT_SECONDS = 300.0
"""Seconds between two heartbeats of a run."""

LONGEST_SILENCE = timedelta(hours=1)
"""A run without a heartbeat for this time counts as killed."""

_logger = logging.getLogger(__name__)


@contextmanager
def mark_in_use(root: str, run_id: str) -> Iterator[None]:
    """Record in a table store that a run is using it, until the block ends.

    Args:
        root: Path or URL of the table store. A table store that cannot be written causes no error here: it may contain
            all that the run needs, and if not, writing the first table fails.
    """
    fs, folder = filesystem(posixpath.join(root, RUNNING))
    path = posixpath.join(folder, f"{run_id}.json")
    started = datetime.now(UTC)
    _write_heartbeat(fs, path, started, is_running=True)
    ended = Event()
    thread = start_thread("tables-in-use", _send_heartbeats, fs, path, started, ended)
    try:
        yield
    finally:
        ended.set()
        thread.join()
        _write_heartbeat(fs, path, started, is_running=False)  # the user may not be allowed to delete files
        with suppress(*storage_errors()):
            fs.rm_file(path)


def start_times(root: str) -> list[datetime]:
    """Return the start times of the runs that are using a table store.

    Args:
        root: Path or URL of the table store; it need not exist.

    Raises:
        AssayError: The table store cannot be read, or does not tell whether a run has ended.
    """
    fs, folder = filesystem(posixpath.join(root, RUNNING))
    fs.invalidate_cache()
    with translate_errors(fs, folder, what="read"):
        if not fs.exists(folder):
            return []
        times = [_start_time(fs, str(path)) for path in fs.ls(folder, detail=False) if str(path).endswith(".json")]
    return [started for started in times if started is not None]


def _send_heartbeats(fs: fsspec.AbstractFileSystem, path: str, started: datetime, ended: Event) -> None:
    while not ended.wait(HEARTBEAT_SECONDS):
        _write_heartbeat(fs, path, started, is_running=True)


def _write_heartbeat(fs: fsspec.AbstractFileSystem, path: str, started: datetime, *, is_running: bool) -> None:
    content = {"started": started.isoformat(), "seen": datetime.now(UTC).isoformat(), "is_running": is_running}
    try:
        atomic_fs_write(fs, path, json.dumps(content).encode())
    except AssayError as error:
        _logger.debug("%s", error)


def _start_time(fs: fsspec.AbstractFileSystem, path: str) -> datetime | None:
    """Return the start time in a heartbeat file; None if the run has ended or was killed."""
    try:
        heartbeat = json.loads(fs.cat_file(path))
        started, seen = (datetime.fromisoformat(heartbeat[name]) for name in ("started", "seen"))
        is_running = heartbeat["is_running"] and datetime.now(UTC) - seen < LONGEST_SILENCE
    except FileNotFoundError:  # it ended since the folder was listed
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(
            f"{fs.unstrip_protocol(path)} is damaged, so it is unknown whether its run still uses these tables. Delete "
            "it once that run has ended."
        ) from error
    return started if is_running else None
