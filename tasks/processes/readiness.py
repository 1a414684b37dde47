"""Wait until a server process is ready."""

import time
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException
from types import MappingProxyType
from urllib.parse import urlsplit


def wait_until_ready(
    is_ready: Callable[[], bool], check: Callable[[float], None], timeout: float, poll_seconds: float
) -> None:
    """Wait until a process is ready.

    Args:
        check: Called between two polls with the seconds since the start; raises if the process has ended.
        timeout: Longest wait, in seconds.

    Raises:
        TimeoutError: The process was not ready in time.
    """
    start = time.monotonic()
    while not is_ready():
        elapsed = time.monotonic() - start
        check(elapsed)
        if elapsed > timeout:
            raise TimeoutError
        time.sleep(poll_seconds)


def http_get(url: str, path: str, timeout: float, headers: Mapping[str, str] = MappingProxyType({})) -> bytes | None:
    """Return the body of a server's response with status 200; None for any other response or none at all.

    Args:
        url: URL of the server; its path is ignored.
        path: Path to get, with its query.
        timeout: Seconds to wait for the server.
    """
    address = urlsplit(url)
    connection = HTTPConnection(address.hostname or "", address.port, timeout=timeout)
    try:
        connection.request("GET", path, headers=dict(headers))
        response = connection.getresponse()
        return response.read() if response.status == 200 else None
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()
