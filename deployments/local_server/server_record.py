"""What the kept server leaves on disk, and how to tell whether the server that a record names is still there.

The lock file decides: the server holds its lock for as long as it lives, and the system frees it with the process,
however that ends. The record beside it says where the server listens. A token in the record, which the server repeats
when asked, tells it from any other process that has got the same port since.
"""

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

IDENTITY_PATH = "/kept-server"
"""Where the server says who it is and how busy it is."""

USE = b"use"
"""The query of those who are about to use the server, so that it does not end under their hands."""


@dataclass(frozen=True, slots=True)
class ServerFolder:
    """The folder of a kept server: its record, lock and log, and as PREFECT_HOME its database."""

    path: Path

    @property
    def record(self) -> Path:
        """Says where the server listens."""
        return self.path / "server.json"

    @property
    def lock(self) -> Path:
        """Held by the server as long as it lives."""
        return self.path / "server.lock"

    @property
    def log(self) -> Path:
        """What the server prints."""
        return self.path / "server.log"

    def is_held(self) -> bool:
        """Whether a server process is alive: starting, serving, stopping or hanging."""
        try:
            with FileLock(self.lock, timeout=0):
                return False
        except Timeout:
            return True


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """Where a kept server listens.

    Args:
        pid: its process.
        host: the machine whose process that is; a folder may be shared between machines.
        version: its Prefect version.
        api_url: what PREFECT_API_URL has to be.
        token: what it repeats when asked.
    """

    pid: int
    host: str
    version: str
    api_url: str
    token: str

    @property
    def is_local(self) -> bool:
        """Whether the process belongs to this machine."""
        return self.host == platform.node()

    def write(self, folder: ServerFolder) -> None:
        """Puts the record in its place in one step."""
        temporary = folder.record.with_suffix(".tmp")
        temporary.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")
        temporary.replace(folder.record)


def read_server_record(folder: ServerFolder) -> ServerRecord | None:
    """The record in a folder; None if there is none or it can not be read."""
    try:
        return ServerRecord(**json.loads(folder.record.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def ask(record: ServerRecord, patience: float = 2.0, *, use: bool = False) -> Mapping[str, Any] | None:
    """What the server of a record says of itself; None if it does not answer or another process does.

    Args:
        record: the server.
        patience: seconds to wait for its answer.
        use: the asker is about to use it.
    """
    if not record.is_local:
        return None
    address = record.api_url.removeprefix("http://").partition("/")[0]
    connection = HTTPConnection(address, timeout=patience)
    try:
        connection.request("GET", f"{IDENTITY_PATH}?{USE.decode()}" if use else IDENTITY_PATH)
        said = json.loads(connection.getresponse().read())
    except (OSError, HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return said if isinstance(said, dict) and said.get("token") == record.token else None
