"""Start the local server if none is running, wait for it, find it and stop it, from any process.

The lock decides whether it runs: the server holds its lock for as long as it lives, and the system releases it with the
process, however that ends. The record, which only its user may read, says where the server listens and which password
it asks for. A token in it, which the server repeats when asked, distinguishes it from another process on the same port.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from deployments.local_server.server_address import ServerAddress, find_configured_url
from deployments.web.http_guard import basic_authorization
from metric_core.errors import AssayError
from tasks.processes.service import Service, ServiceRecord, http_get
from tasks.processes.system_processes import spawn_detached
from tasks.runtime import telemetry

IDENTITY_PATH = "/kept-server"
"""The path at which the server reports its token and its activity."""

USE = b"use"
"""The query of callers that are about to use the server, which must then not end as idle."""

ALREADY_RUNNING = 75
"""Exit code of a process that found another server in its folder."""

START_SECONDS = 120.0
HANGING_SECONDS = 30.0
"""Seconds after which a server without an answer is replaced: on a busy machine one that runs has taken over ten."""

RETENTION: Mapping[str, str] = {
    "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",
    "PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD": str(30 * 24 * 60 * 60),
}
"""The server deletes flow runs 30 days after their end, as it deletes events after 7: else its database only grows."""

LOG_BYTES = 1_000_000
"""Size at which the log is replaced."""


@dataclass(frozen=True, slots=True)
class ServerRecord(ServiceRecord):
    """A local server that listens.

    Args:
        version: Version of its Prefect.
        api_url: Value for PREFECT_API_URL.
        token: Token that the server repeats when asked.
        credentials: `user:password` that it asks for.
    """

    version: str
    api_url: str
    token: str = field(repr=False)
    credentials: str = field(repr=False)

    @property
    def address(self) -> ServerAddress:
        """Where and how clients use the server."""
        return ServerAddress(self.api_url, self.credentials)

    def query(self, timeout: float = 2.0, *, use: bool = False) -> Mapping[str, Any] | None:
        """Return what the server reports about itself; None if it does not answer or another process does.

        Args:
            timeout: Seconds to wait for the answer.
            use: True counts the query as use of the server, which delays its end.
        """
        if not self.is_local:
            return None
        path = f"{IDENTITY_PATH}?{USE.decode()}" if use else IDENTITY_PATH
        body = http_get(self.api_url, path, timeout, {"Authorization": basic_authorization(self.credentials)})
        try:
            reported = json.loads(body or b"null")
        except ValueError:
            return None
        return reported if isinstance(reported, dict) and reported.get("token") == self.token else None


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The state of the local server.

    Args:
        folder: Folder of its record, database and log.
        record: Record of the server; None if no server answers.
        open_connections: Number of open requests and web sockets.
        idle_seconds: Seconds since its last use.
    """

    folder: Path
    record: ServerRecord | None = None
    open_connections: int = 0
    idle_seconds: float = 0.0

    @property
    def running(self) -> bool:
        """Whether the server answers."""
        return self.record is not None

    def __str__(self) -> str:
        if self.record is None:
            return f"no local Prefect server is running (folder {self.folder})"
        use = "in use" if self.open_connections else f"idle for {self.idle_seconds:.0f} s"
        return f"{self.record.api_url} (process {self.record.pid}, Prefect {self.record.version}, {use}, {self.folder})"


class LocalServer(Service[ServerRecord]):
    """The local server of a home, in a folder that is its PREFECT_HOME too.

    Args:
        idle_minutes: Minutes without use after which a server that is started here ends.
    """

    name = "server"
    title = "the local Prefect server"
    elsewhere = (
        "runs on another machine, {host}. Set ASSAY_HOME to a folder of this machine, or PREFECT_API_URL to a server "
        "that both can reach."
    )
    record_type = ServerRecord
    stop_seconds = 10.0
    poll_seconds = 0.02

    def __init__(self, path: Path, idle_minutes: float = 30.0) -> None:
        super().__init__(path)
        self.idle_minutes = idle_minutes
        self.address: ServerAddress | None = None
        """Address of a server that answers; None while there is none."""
        self.process: subprocess.Popen[bytes] | None = None
        """Process that was started. It may have ended in favor of the server of another caller."""
        self._log_start = 0

    @classmethod
    def from_home(cls, home: Path, idle_minutes: float = 30.0) -> "LocalServer":
        """Return the local server of a home.

        Args:
            home: Folder of caches and stores.
            idle_minutes: Minutes without use after which a server that is started here ends.
        """
        return cls(home.expanduser().absolute() / "prefect", idle_minutes)

    def is_alive(self, record: ServerRecord) -> bool:
        """Return whether a server holds the lock, whichever record it has."""
        del record
        return self.is_locked()

    def find_usable(self) -> ServerAddress | None:
        """Return the address of a usable server; None if there is none.

        A server that hangs, or is idle and of another version of Prefect or of rag-assay, is stopped.

        Raises:
            AssayError: The server is in use and of another version, or runs on another machine.
        """
        record = self.find()
        if record is None:
            return None
        reported = record.query(use=True)
        if reported is None and self.is_locked():
            reported = record.query(HANGING_SECONDS, use=True)
        installed = version("prefect")
        if reported is not None and record.version == installed:
            return record.address
        if reported is not None and reported["open_connections"]:
            raise AssayError(
                f"the local Prefect server in {self.path} is in use and of version {record.version}, but {installed} "
                "is installed here. Wait for the run that uses it, or set ASSAY_HOME to another folder."
            )
        self.stop()
        return None

    def start(self) -> None:
        """Start the server unless there is one, without waiting for it: call `wait`.

        Raises:
            AssayError: A server in use is of another version, or runs on another machine.
        """
        url = find_configured_url()
        self.address = self.find_usable() if url is None else ServerAddress(url)
        if self.address is None:
            self.process = self._launch()
            self._log_start = self.log.stat().st_size

    def wait(self, timeout: float = START_SECONDS) -> ServerAddress:
        """Wait until the server answers, and return its address.

        Args:
            timeout: Longest wait, in seconds.

        Raises:
            AssayError: The server did not start; the message has the relevant lines of its log.
        """

        def is_ready() -> bool:
            if self.address is None:
                record = self.read()
                if record is not None and record.query(use=True) is not None:
                    self.address = record.address
            return self.address is not None

        def find_problem(elapsed: float) -> str | None:
            code = self.process.poll() if self.process is not None else None
            if code == ALREADY_RUNNING and not self.is_locked():
                self.process = self._launch()  # the server in whose favor it ended has ended too
            elif code not in (None, ALREADY_RUNNING):
                return f"ended with exit code {code}"
            return f"did not answer within {timeout:g} s" if elapsed > timeout else None

        advice = "Try `assay server stop`, or set PREFECT_API_URL to your own server."
        self.wait_until_ready(is_ready, find_problem, lambda _log: advice, log_start=self._log_start)
        return cast("ServerAddress", self.address)

    def _launch(self) -> subprocess.Popen[bytes]:
        self.create()
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES:
            self.log.unlink()
        module = [sys.executable, "-m", "rag_assay._child", "deployments.local_server.server_process"]
        command = [*module, str(self.path), "--idle-minutes", str(self.idle_minutes)]
        return spawn_detached(command, self.log, self.environment(os.environ), self.path)

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of the server: without the user's Prefect settings and without telemetry."""
        return {name: value for name, value in inherited.items() if not name.startswith("PREFECT_")} | {
            **telemetry.PREFECT,
            **RETENTION,
            "PREFECT_HOME": str(self.path),
            "PREFECT_LOGGING_SERVER_LEVEL": "WARNING",
            # Concurrency slots in the database outlive this process; so must the leases that say when they are free
            # again.
            "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
            "PREFECT_SERVER_UI_ENABLED": "false",
        }


def start_server(home: Path, idle_minutes: float = 30.0) -> LocalServer:
    """Start the local server as `ensure_server` does, without waiting for it: call `wait`.

    Args:
        home: Folder of caches and stores.
        idle_minutes: Minutes without use after which a server that is started here ends.

    Raises:
        AssayError: A server in use is of another version, or runs on another machine.
    """
    server = LocalServer.from_home(home, idle_minutes)
    server.start()
    return server


def ensure_server(home: Path, idle_minutes: float = 30.0) -> ServerAddress:
    """Return the address of a Prefect server that answers: the configured one, the local one, or a new local one.

    Args:
        home: Folder of caches and stores.
        idle_minutes: Minutes without use after which a server that is started here ends.

    Raises:
        AssayError: The server did not start, or a server in use is of another version.
    """
    return start_server(home, idle_minutes).wait()


def server_status(home: Path) -> ServerStatus:
    """Return the state of the local server in a home.

    Args:
        home: Folder of caches and stores.
    """
    server = LocalServer.from_home(home)
    record = server.read()
    reported = record.query() if record is not None else None
    if reported is None:
        return ServerStatus(server.path)
    return ServerStatus(server.path, record, int(reported["open_connections"]), float(reported["idle_seconds"]))


def stop_server(home: Path) -> bool:
    """Stop the local server in a home and wait until it has ended.

    Args:
        home: Folder of caches and stores.

    Returns:
        Whether a server was running.

    Raises:
        AssayError: The server runs on another machine, or does not end.
    """
    return LocalServer.from_home(home).stop()


def find_address(home: Path) -> ServerAddress | None:
    """Return the address of the configured server, or of the local one if that is running; None if neither is there.

    Args:
        home: Folder of caches and stores.
    """
    url = find_configured_url()
    if url is not None:
        return ServerAddress(url)
    record = server_status(home).record
    return None if record is None else record.address
