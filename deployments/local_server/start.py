"""Start the local server if none is running, and let the caller wait for it later."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, cast

from deployments.local_server.find_server import find_server
from deployments.local_server.server_address import ServerAddress, find_configured_url
from deployments.local_server.server_process import ALREADY_RUNNING
from deployments.local_server.server_record import ServerFolder, ServerRecord, query_server
from metric_core.errors import AssayError
from tasks.processes.process_log import excerpt
from tasks.processes.readiness import wait_until_ready
from tasks.processes.spawn import spawn_detached
from tasks.runtime import telemetry

Process: TypeAlias = subprocess.Popen[bytes]

START_SECONDS = 120.0
POLL_SECONDS = 0.02
RETENTION: Mapping[str, str] = {
    "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",
    "PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD": str(30 * 24 * 60 * 60),
}
"""The server deletes flow runs 30 days after their end, as it deletes events after 7: else its database only grows."""

LOG_BYTES = 1_000_000
"""Size at which the log is replaced."""


@dataclass(slots=True)
class ServerHandle:
    """A server that is running or starting.

    Args:
        folder: Folder of the local server.
        address: Address of a server that answers; None while there is none.
        launch: Starts a server process; called if there is no address.
        process: Process that was started. It may have ended in favor of the server of another caller.
    """

    folder: ServerFolder
    address: ServerAddress | None
    launch: Callable[[], Process]
    process: Process | None = field(init=False, default=None)
    _log_start: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if self.address is None:
            self.process = self.launch()
            self._log_start = self.folder.log.stat().st_size

    def wait(self, timeout: float = START_SECONDS) -> ServerAddress:
        """Wait until the server answers, and return its address.

        Args:
            timeout: Longest wait, in seconds.

        Raises:
            AssayError: The server did not start; the message has the relevant lines of its log.
        """
        try:
            wait_until_ready(lambda: self._find() is not None, self._check_process, timeout, POLL_SECONDS)
        except TimeoutError as error:
            raise self._start_error(f"did not answer within {timeout:g} s") from error
        return cast("ServerAddress", self.address)

    def _find(self) -> ServerAddress | None:
        if self.address is None:
            record = ServerRecord.read(self.folder)
            if record is not None and query_server(record, use=True) is not None:
                self.address = record.address
        return self.address

    def _check_process(self, _elapsed: float) -> None:
        code = self.process.poll() if self.process is not None else None
        if code == ALREADY_RUNNING and not self.folder.is_locked():
            self.process = self.launch()  # the server in whose favor it ended has ended too
        elif code not in (None, ALREADY_RUNNING):
            raise self._start_error(f"ended with exit code {code}")

    def _start_error(self, what: str) -> AssayError:
        return AssayError(
            f"the local Prefect server {what}. Try `assay server stop`, or set PREFECT_API_URL to your own server.\n"
            f"{excerpt(self.folder.log, start=self._log_start)}"
        )


def ensure_server(home: Path, idle_minutes: float = 30.0) -> ServerAddress:
    """Return the address of a Prefect server that answers: the configured one, the local one, or a new local one.

    Args:
        home: Folder of caches and stores; the files of the local server are in its folder `prefect`.
        idle_minutes: Minutes without use after which a server that is started here ends.

    Raises:
        AssayError: The server did not start, or a server in use is of another version.
    """
    return start_server(home, idle_minutes).wait()


def start_server(home: Path, idle_minutes: float = 30.0) -> ServerHandle:
    """Start the local server as `ensure_server` does, without waiting for it: call `wait` on the handle.

    Args:
        home: Folder of caches and stores; the files of the local server are in its folder `prefect`.
        idle_minutes: Minutes without use after which a server that is started here ends.

    Raises:
        AssayError: A server in use is of another version, or runs on another machine.
    """
    folder = ServerFolder.from_home(home)
    url = find_configured_url()
    address = find_server(folder) if url is None else ServerAddress(url)
    return ServerHandle(folder, address, lambda: _launch(folder, idle_minutes))


def _launch(folder: ServerFolder, idle_minutes: float) -> Process:
    folder.create()
    if folder.log.exists() and folder.log.stat().st_size > LOG_BYTES:
        folder.log.unlink()
    module = [sys.executable, "-m", "rag_assay._child", "deployments.local_server"]
    command = [*module, str(folder.path), "--idle-minutes", str(idle_minutes)]
    return spawn_detached(command, folder.log, _environment(os.environ, folder), folder.path)


def _environment(inherited: Mapping[str, str], folder: ServerFolder) -> dict[str, str]:
    """Return the environment of the server: without the user's Prefect settings and without telemetry."""
    return {name: value for name, value in inherited.items() if not name.startswith("PREFECT_")} | {
        **telemetry.PREFECT,
        **RETENTION,
        "PREFECT_HOME": str(folder.path),
        "PREFECT_LOGGING_SERVER_LEVEL": "WARNING",
        # Concurrency slots in the database outlive this process; so must the leases that say when they are free again.
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
        "PREFECT_SERVER_UI_ENABLED": "false",
    }
