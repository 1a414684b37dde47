"""Record the local server, and query whether it is still running.

The lock decides: the server holds its lock for as long as it lives, and the system releases it with the process,
however that ends. The record, which only its user may read, says where the server listens and which credentials it asks
for. A token in it, which the server repeats when asked, distinguishes it from another process on the same port.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deployments.local_server.server_address import ServerAddress
from deployments.web.http_guard import basic_authorization
from tasks.processes.process_record import ProcessFolder, ProcessRecord
from tasks.processes.readiness import http_get

IDENTITY_PATH = "/kept-server"
"""The path at which the server reports its token and its activity."""

USE = b"use"
"""The query of callers that are about to use the server, which must then not end as idle."""


class ServerFolder(ProcessFolder):
    """The folder of the local server, which is its PREFECT_HOME too. The server holds the lock as long as it lives."""

    name = "server"

    @classmethod
    def from_home(cls, home: Path) -> "ServerFolder":
        """Return the folder in a home."""
        return cls(home.expanduser().absolute() / "prefect")


@dataclass(frozen=True, slots=True)
class ServerRecord(ProcessRecord):
    """A local server that listens.

    Args:
        pid: Id of the process.
        host: Machine of the process.
        version: Version of its Prefect.
        api_url: Value for PREFECT_API_URL.
        token: Token that the server repeats when asked.
        credentials: `user:password` that it asks for; empty in records of releases whose servers ask for none.
    """

    version: str
    api_url: str
    token: str = field(repr=False)
    credentials: str = field(default="", repr=False)

    @property
    def address(self) -> ServerAddress:
        """Where and how clients use the server."""
        return ServerAddress(self.api_url, self.credentials or None)


def query_server(record: ServerRecord, timeout: float = 2.0, *, use: bool = False) -> Mapping[str, Any] | None:
    """Return what a server reports about itself; None if it does not answer or another process does.

    Args:
        record: Record of the server.
        timeout: Seconds to wait for the answer.
        use: True counts the query as use of the server, which delays its end.
    """
    if not record.is_local:
        return None
    path = f"{IDENTITY_PATH}?{USE.decode()}" if use else IDENTITY_PATH
    body = http_get(record.api_url, path, timeout, {"Authorization": basic_authorization(record.credentials)})
    try:
        reported = json.loads(body or b"null")
    except ValueError:
        return None
    return reported if isinstance(reported, dict) and reported.get("token") == record.token else None
