"""Finds, asks and stops a kept server, from any process."""

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from deployments.local_server.server_record import ServerFolder, ServerRecord, ask, read_server_record
from metric_core.errors import AssayError

STOP_SECONDS = 10.0
PATIENCE_SECONDS = 10.0
"""How long a server that is alive may take to answer before it counts as hanging."""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """What is known of a kept server.

    Args:
        folder: where its record, database and log lie.
        record: where it listens; None if no server answers.
        open_connections: requests and web sockets open now.
        idle_seconds: seconds since it was last used.
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
            return f"no kept server is running (folder {self.folder})"
        use = "in use" if self.open_connections else f"idle for {self.idle_seconds:.0f} s"
        return f"{self.record.api_url} (process {self.record.pid}, Prefect {self.record.version}, {use}, {self.folder})"


def server_folder(home: Path) -> ServerFolder:
    """The folder of the kept server in a home."""
    return ServerFolder(home.expanduser().absolute() / "prefect")


def server_status(home: Path) -> ServerStatus:
    """What the kept server in a home says of itself."""
    folder = server_folder(home)
    record = read_server_record(folder)
    said = ask(record) if record is not None else None
    if said is None:
        return ServerStatus(folder.path)
    return ServerStatus(folder.path, record, int(said["open_connections"]), float(said["idle_seconds"]))


def stop_server(home: Path) -> bool:
    """Stops the kept server in a home and waits until it has ended.

    Returns:
        Whether there was one.

    Raises:
        AssayError: it runs on another machine, or does not end.
    """
    return _stop(server_folder(home))


def find_server(folder: ServerFolder) -> str | None:
    """The API URL of a kept server that can be used; one that hangs, or is idle and of another version, is ended.

    Raises:
        AssayError: it is of another Prefect version and in use, or it runs on another machine.
    """
    record = read_server_record(folder)
    if record is None:
        return None
    said = ask(record, use=True)
    if said is None and folder.is_held():
        _check_host(record, folder)
        said = ask(record, PATIENCE_SECONDS, use=True)
    installed = version("prefect")
    if said is not None and record.version == installed:
        return record.api_url
    if said is not None and said["open_connections"]:
        raise AssayError(
            f"the local Prefect server in {folder.path} is in use and of version {record.version}, but {installed} is "
            "installed here. Wait for the run that uses it, or set ASSAY_HOME to another folder."
        )
    _stop(folder)
    return None


def _stop(folder: ServerFolder) -> bool:
    record = read_server_record(folder)
    if record is None or not folder.is_held():
        return False
    _check_host(record, folder)
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.kill(record.pid, number)
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline:
            if not folder.is_held():
                folder.record.unlink(missing_ok=True)
                return True
            time.sleep(0.02)
    raise AssayError(f"the local Prefect server, process {record.pid}, does not end; end it by hand")


def _check_host(record: ServerRecord, folder: ServerFolder) -> None:
    if not record.is_local:
        raise AssayError(
            f"the local Prefect server in {folder.path} runs on another machine, {record.host}. "
            "Set ASSAY_HOME to a folder of this machine, or PREFECT_API_URL to a server that both can reach."
        )
