"""The kept server: a local Prefect server that starts with the first run and stays for the next ones.

A Prefect server of a run's own costs seconds of imports and, in a new home, of database migrations. So the first
`assay run` leaves one behind in the background, on the loopback interface, with its database in the data folder; it
ends by itself after some idle minutes. Whoever has named a Prefect server in Prefect's own settings gets that one.
"""

from deployments.local_server.find_server import ServerStatus, server_status, stop_server
from deployments.local_server.server_address import find_configured_url, mask_url, use_server
from deployments.local_server.start import ServerHandle, ensure_server, start_server

__all__ = [
    "ServerHandle",
    "ServerStatus",
    "ensure_server",
    "find_configured_url",
    "mask_url",
    "server_status",
    "start_server",
    "stop_server",
    "use_server",
]
