"""Share a folder and one kept Prefect server among all workers of one run of pytest.

A server of each worker's own would cost 20 seconds of computing for its start and its migrations, and more for idling.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from filelock import FileLock

from deployments.local_server import ServerAddress, start_server, stop_server
from tests.waiting import DEAD_SECONDS


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """Return the folder that all workers of this run see."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


def start_kept_server(factory: pytest.TempPathFactory) -> Path:
    """Start a kept server on a new home, unless another worker has done so; return the server's folder.

    It runs until `stop_kept_server` is called, by the process that controls the workers.
    """
    folder = shared_folder(factory)
    home, copy = folder / "home", folder / "migrated.db"
    with FileLock(folder / "server.lock"):
        if not copy.exists():
            ensure_local_server(home)
            _copy(home / "prefect" / "prefect.db", copy)
    return home / "prefect"


def ensure_local_server(home: Path) -> ServerAddress:
    """Return the address of the local server in a home, which is started if none runs, however long that takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PREFECT_API_URL", raising=False)
        return start_server(home).wait(DEAD_SECONDS)


def copy_migrated_database(factory: pytest.TempPathFactory, prefect_home: Path) -> None:
    """Copy the database of a new Prefect server into a home, so that a server there needs no migrations."""
    start_kept_server(factory)
    prefect_home.mkdir(parents=True, exist_ok=True)
    _copy(shared_folder(factory) / "migrated.db", prefect_home / "prefect.db")


def stop_kept_server(factory: pytest.TempPathFactory) -> None:
    """Stop the kept server, if it was started."""
    stop_server(shared_folder(factory) / "home")


def _copy(database: Path, copy: Path) -> None:
    """Copy a database that may be in use."""
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(copy.with_suffix(".tmp"))) as target:
        source.backup(target)
    copy.with_suffix(".tmp").replace(copy)
