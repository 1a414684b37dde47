"""Local Prefect servers for tests, which need no migrations but for the first one of a run of pytest.

Migrations take half of the computing of a server's first start.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from filelock import FileLock

from deployments.local_server import ServerAddress, local_server, start_server
from tests.waiting import DEAD_SECONDS


def ensure_local_server(home: Path) -> ServerAddress:
    """Return the address of the local server in a home, which is started if none runs, however long that takes.

    It is that server even while Prefect's settings name another one, or the stub.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_server, "find_configured_url", lambda: None)
        return start_server(home).wait(DEAD_SECONDS)


def prepare_home(factory: pytest.TempPathFactory, home: Path) -> None:
    """Give a home the database of a Prefect server.

    The first home of all workers gets a local server, which creates its database; the others get a copy of it.
    """
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    database, copy = home / "prefect" / "prefect.db", shared / "migrated.db"
    with FileLock(shared / "migrated.lock"):
        if not copy.exists():
            ensure_local_server(home)
            _copy(database, copy)
            return
    database.parent.mkdir(parents=True, exist_ok=True)
    _copy(copy, database)


def _copy(database: Path, copy: Path) -> None:
    """Copy a database that may be in use."""
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(copy.with_suffix(".tmp"))) as target:
        source.backup(target)
    copy.with_suffix(".tmp").replace(copy)
