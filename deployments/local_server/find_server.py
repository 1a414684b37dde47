"""Find, query and stop the local server, from any process."""

import os
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from deployments.local_server.server_address import ServerAddress, find_configured_url
from deployments.local_server.server_record import ServerFolder, ServerRecord, query_server
from metric_core.errors import AssayError
from tasks.processes.stop import end_process

STOP_SECONDS = 10.0
HANGING_SECONDS = 30.0
"""Seconds after which a server without an answer is replaced: on a busy machine one that runs has taken over ten."""


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


def server_status(home: Path) -> ServerStatus:
    """Return the state of the local server in a home.

    Args:
        home: Folder of caches and stores.
    """
    folder = ServerFolder.from_home(home)
    record = ServerRecord.read(folder)
    reported = query_server(record) if record is not None else None
    if reported is None:
        return ServerStatus(folder.path)
    return ServerStatus(folder.path, record, int(reported["open_connections"]), float(reported["idle_seconds"]))


def stop_server(home: Path) -> bool:
    """Stop the local server in a home and wait until it has ended.

    Args:
        home: Folder of caches and stores.

    Returns:
        Whether a server was running.

    Raises:
        AssayError: The server runs on another machine, or does not end.
    """
    return _stop(ServerFolder.from_home(home))


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


def find_server(folder: ServerFolder) -> ServerAddress | None:
    """Return the address of a usable local server; None if there is none.

    A server that hangs, or is idle and of another version of Prefect or of rag-assay, is stopped.

    Args:
        folder: Folder of the server.

    Raises:
        AssayError: The server is in use and of another version, or runs on another machine.
    """
    record = ServerRecord.read(folder)
    if record is None:
        return None
    reported = query_server(record, use=True)
    if reported is None and folder.is_locked():
        _check_host(record, folder)
        reported = query_server(record, HANGING_SECONDS, use=True)
    installed = version("prefect")
    if reported is not None and record.version == installed and record.credentials:
        return record.address
    if reported is not None and reported["open_connections"]:
        found = f"of version {record.version}, but {installed} is installed here"
        raise AssayError(
            f"the local Prefect server in {folder.path} is in use and "
            f"{found if record.credentials else 'of an earlier release of rag-assay, which any program can use'}. "
            "Wait for the run that uses it, or set ASSAY_HOME to another folder."
        )
    _stop(folder)
    return None


def _stop(folder: ServerFolder) -> bool:
    record = ServerRecord.read(folder)
    if record is None or not folder.is_locked():
        return False
    _check_host(record, folder)
    if not end_process(lambda number: os.kill(record.pid, number), folder.is_locked, STOP_SECONDS):
        raise AssayError(f"the local Prefect server, process {record.pid}, does not end; end it by hand")
    folder.record.unlink(missing_ok=True)
    return True


def _check_host(record: ServerRecord, folder: ServerFolder) -> None:
    if not record.is_local:
        raise AssayError(
            f"the local Prefect server in {folder.path} runs on another machine, {record.host}. "
            "Set ASSAY_HOME to a folder of this machine, or PREFECT_API_URL to a server that both can reach."
        )
