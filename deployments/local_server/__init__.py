"""Keep a local Prefect server that the first run starts and later runs share.

A new Prefect server costs seconds of imports and, in a new home, of database migrations. Therefore the first
`assay run` leaves one running in the background, on the loopback interface, with its database in the data folder; it
ends after some idle minutes. If Prefect's settings name a server, that one is used instead.
"""

from deployments.local_server.local_server import (
    LocalServer,
    ServerStatus,
    ensure_server,
    find_address,
    server_status,
    start_server,
    stop_server,
)
from deployments.local_server.server_address import ServerAddress, find_configured_url, use_server

__all__ = [
    "LocalServer",
    "ServerAddress",
    "ServerStatus",
    "ensure_server",
    "find_address",
    "find_configured_url",
    "server_status",
    "start_server",
    "stop_server",
    "use_server",
]
