"""Which runs are using a store of stage tables, so that pruning leaves them what they need, however long they take."""

import json
import logging
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from threading import Event, Thread

import fsspec

from metric_core.errors import AssayError
from tasks.tables.inventory import RUNNING
from tasks.tables.table_files import atomic_write, filesystem, translate_storage_errors

PERIOD = 300.0
"""Seconds between two signs of life of a run."""

LONGEST_SILENCE = timedelta(hours=1)
"""A run that has given no sign of life for as long was killed."""

_logger = logging.getLogger(__name__)


@contextmanager
def mark_in_use(root: str, run_id: str) -> Iterator[None]:
    """Notes in a store that a run is using it, until the block ends.

    Args:
        root: path or URL of the store of stage tables. One that can not be written is used all the same: it may hold
            all that the run needs, and if not, the first table says so.
        run_id: id of the run.
    """
    fs, folder = filesystem(posixpath.join(root, RUNNING))
    path = posixpath.join(folder, f"{run_id}.json")
    started = datetime.now(UTC)
    _note(fs, path, started, is_running=True)
    ended = Event()
    thread = Thread(target=_beat, args=(fs, path, started, ended), name="tables-in-use", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        _note(fs, path, started, is_running=False)  # who runs may not be allowed to delete
        with suppress(*translate_storage_errors()):
            fs.rm_file(path)


def oldest_start(root: str) -> list[datetime]:
    """When the runs began that are using a store.

    Args:
        root: path or URL of the store of stage tables; it need not be there.
    """
    fs, folder = filesystem(posixpath.join(root, RUNNING))
    fs.invalidate_cache()
    if not fs.exists(folder):
        return []
    found = (_started(fs, str(path)) for path in fs.ls(folder, detail=False) if str(path).endswith(".json"))
    return [started for started in found if started is not None]


def _beat(fs: fsspec.AbstractFileSystem, path: str, started: datetime, ended: Event) -> None:
    while not ended.wait(PERIOD):
        _note(fs, path, started, is_running=True)


def _note(fs: fsspec.AbstractFileSystem, path: str, started: datetime, *, is_running: bool) -> None:
    content = {"started": started.isoformat(), "seen": datetime.now(UTC).isoformat(), "is_running": is_running}
    try:
        atomic_write(fs, path, json.dumps(content).encode())
    except AssayError as error:
        _logger.debug("%s", error)


def _started(fs: fsspec.AbstractFileSystem, path: str) -> datetime | None:
    """When the run of a note began; None if it has ended, was killed, or its note can not be read."""
    try:
        note = json.loads(fs.cat_file(path))
        started, seen = (datetime.fromisoformat(note[name]) for name in ("started", "seen"))
        is_running = note["is_running"] and datetime.now(UTC) - seen < LONGEST_SILENCE
    except translate_storage_errors(ValueError, KeyError, TypeError):
        return None
    return started if is_running else None
