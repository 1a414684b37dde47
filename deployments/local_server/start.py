"""Starts the kept server where none is running, without making the caller wait before it has to."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from deployments.local_server.find_server import find_server, server_folder
from deployments.local_server.server_address import find_configured_url
from deployments.local_server.server_process import ALREADY_KEPT
from deployments.local_server.server_record import ServerFolder, ask, read_server_record
from metric_core.errors import AssayError
from tasks.runtime import telemetry

Process: TypeAlias = subprocess.Popen[bytes]

START_SECONDS = 120.0
LOG_BYTES = 1_000_000
TAIL_LINES = 15

_started: list[Process] = []
"""Keeps the objects of servers that outlive their handles: one that is dropped while its process runs warns."""


@dataclass(slots=True)
class ServerHandle:
    """A server that is there or on its way.

    Args:
        folder: the folder of the kept server.
        api_url: the API URL, once a server answers.
        launch: starts a server process; not called if there is a URL.
        process: what was started; it may have made way for the server of another caller.
    """

    folder: ServerFolder
    api_url: str | None
    launch: Callable[[], Process]
    process: Process | None = field(init=False, default=None)
    _log_start: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if self.api_url is None:
            self.process = self.launch()
            self._log_start = self.folder.log.stat().st_size

    def wait(self, timeout: float = START_SECONDS) -> str:
        """Waits until the server answers.

        Args:
            timeout: seconds to wait at most.

        Returns:
            The API URL.

        Raises:
            AssayError: the server did not start; the message has the end of its log.
        """
        deadline = time.monotonic() + timeout
        while self.api_url is None:
            record = read_server_record(self.folder)
            if record is not None and ask(record, use=True) is not None:
                self.api_url = record.api_url
            elif time.monotonic() > deadline:
                raise self._failure(f"did not answer within {timeout:g} s")
            else:
                self._check_process()
                time.sleep(0.02)
        return self.api_url

    def _check_process(self) -> None:
        code = self.process.poll() if self.process is not None else None
        if code == ALREADY_KEPT and not self.folder.is_held():
            self.process = self.launch()  # the server that it made way for has ended since
        elif code not in (None, ALREADY_KEPT):
            raise self._failure(f"ended with exit code {code}")

    def _failure(self, what: str) -> AssayError:
        written = self.folder.log.read_bytes()[self._log_start :].decode(errors="replace").strip()
        tail = "\n".join(written.splitlines()[-TAIL_LINES:]) or "(nothing)"
        return AssayError(
            f"the local Prefect server {what}. Try `assay server stop`, or set PREFECT_API_URL to a server of yours. "
            f"The end of its log {self.folder.log}:\n{tail}"
        )


def ensure_server(home: Path, idle_minutes: float = 30.0) -> str:
    """The API URL of a Prefect server that answers: the user's own, the kept one, or a new kept one.

    Args:
        home: the folder of stores and caches; the server's files lie in its folder `prefect`.
        idle_minutes: a server that is started here ends after so long without use.

    Raises:
        AssayError: the server did not start, or a server in use is of another Prefect version.
    """
    return start_server(home, idle_minutes).wait()


def start_server(home: Path, idle_minutes: float = 30.0) -> ServerHandle:
    """Like `ensure_server`, but does not wait for a server that has to be started: call `wait` on what is returned."""
    folder = server_folder(home)
    url = find_configured_url() or find_server(folder)
    return ServerHandle(folder, url, lambda: _launch(folder, idle_minutes))


def _launch(folder: ServerFolder, idle_minutes: float) -> Process:
    folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.log.exists() and folder.log.stat().st_size > LOG_BYTES:
        folder.log.unlink()
    with folder.log.open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 a module of ours
            [sys.executable, "-m", "deployments.local_server", str(folder.path), "--idle-minutes", str(idle_minutes)],
            cwd=folder.path,
            env=_environment(os.environ, folder),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    _started.append(process)
    return process


def _environment(inherited: Mapping[str, str], folder: ServerFolder) -> dict[str, str]:
    """The user's Prefect settings are for the user's server: this one has its own, and no telemetry."""
    return {name: value for name, value in inherited.items() if not name.startswith("PREFECT_")} | {
        **telemetry.PREFECT,
        "PREFECT_HOME": str(folder.path),
        "PREFECT_LOGGING_SERVER_LEVEL": "WARNING",
        # Slots that are taken outlive this process, in the database; so must what says when they are free again.
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": "http://127.0.0.1",
        "PREFECT_SERVER_UI_ENABLED": "false",
    }
