"""Choose the Prefect server of a run: the one in the user's Prefect settings, or the local one."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from metric_core.errors import AssayError, ConfigError
from tasks.prefect_support.own_runs import end_killed_runs
from tasks.runtime.credentials import mask_url
from tasks.runtime.start_up import gc_paused
from tasks.runtime.telemetry import DO_NOT_TRACK, disable_telemetry

API_URL = "PREFECT_API_URL"
AUTH_STRING = "PREFECT_API_AUTH_STRING"

LOCAL_RETRIES = 3
"""Retries of a request to the local server, after about 2, 4 and 8 s: the server may be busy, or it has ended."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A Prefect server, and what a client needs to use it.

    Args:
        url: API URL.
        credentials: `user:password` that the local server asks for; None for a server of Prefect's settings, which say
            themselves whether it asks for a password.
    """

    url: str
    credentials: str | None = field(default=None, repr=False)

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which another process uses the server."""
        return {API_URL: self.url} | ({} if self.credentials is None else {AUTH_STRING: self.credentials})


def find_configured_url() -> str | None:
    """Return the URL of the server that the user's Prefect settings name; None if they name none.

    Importing Prefect takes most of a second, so it is imported only if there is a profile or a settings file that
    mentions Prefect.

    Raises:
        ConfigError: The setting is not the URL of a server.
    """
    url = os.environ.get(API_URL)
    if not url and (_is_imported() or _has_settings()):
        from prefect.settings import get_current_settings  # noqa: PLC0415 slow, and rarely needed

        url = get_current_settings().api.url
    if url and not _is_url(url):
        raise ConfigError(invalid_url_error(url))
    return url or None


def invalid_url_error(url: str) -> str:
    """Return the error message about a setting that is not the URL of a server.

    Args:
        url: Value of the setting.

    >>> invalid_url_error("http://[/api")
    "PREFECT_API_URL must be like http://127.0.0.1:4200/api, got 'http://[/api'"
    """
    hint = ". It has a user or a password, not shown here; in those, percent-encode / : @ [ ]" if "@" in url else ""
    return f"{API_URL} must be like http://127.0.0.1:4200/api, got {mask_url(url)!r}{hint}"


@contextmanager
def use_server(server: ServerAddress) -> Iterator[None]:
    """Use a Prefect server for the flows of a block; best entered before Prefect is imported.

    Flow runs of this machine's killed processes, which nothing else ends, end as Crashed first.

    On the local server, runs send no heartbeats: nothing there listens to them, and the thread that sends them delays
    the end of each flow run by a second. They also retry requests less often: a local server that does not answer has
    ended, and each request at the end of the run would wait a minute for it.

    Events go to the local server of the block. By itself, Prefect sends all events of a process to the server that it
    has used first, even after that has ended; a notebook may use several, since local servers stop when idle.

    Args:
        server: Address of the server, as `ensure_server` returns it.

    Raises:
        AssayError: The server ended while it was used.
    """
    before = {name: os.environ.get(name) for name in (API_URL, AUTH_STRING, *DO_NOT_TRACK)}
    os.environ.update(server.environment)  # for processes that the run starts, and for the first import of Prefect
    disable_telemetry(DO_NOT_TRACK)
    try:
        with gc_paused():
            from prefect.settings import PREFECT_API_URL, temporary_settings  # noqa: PLC0415 must see the lines above
        from prefect.events.clients import PrefectEventsClient  # noqa: PLC0415
        from prefect.events.worker import EventsWorker  # noqa: PLC0415
        from prefect.settings import PREFECT_API_AUTH_STRING  # noqa: PLC0415
        from prefect.settings import PREFECT_CLIENT_MAX_RETRIES as RETRIES  # noqa: PLC0415
        from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY as HEARTBEAT  # noqa: PLC0415
        from prefect.settings import PREFECT_UI_URL as PAGES  # noqa: PLC0415

        settings: dict[Any, Any] = {PREFECT_API_URL: server.url}
        if server.credentials is not None:
            settings |= {PREFECT_API_AUTH_STRING: server.credentials, HEARTBEAT: None, RETRIES: LOCAL_RETRIES}
            settings[PAGES] = ""  # it serves none, and Prefect logs links to them
        with temporary_settings(settings), _explain_lost_server(server.url):
            if server.credentials is not None:
                EventsWorker.set_client_override(PrefectEventsClient, api_url=server.url)
            try:
                end_killed_runs()
                yield
            finally:
                EventsWorker.set_client_override(None)
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _explain_lost_server(url: str) -> Iterator[None]:
    """Raise network errors of requests to this server as errors that say what is saved."""
    from httpx import TransportError  # noqa: PLC0415 comes with Prefect

    try:
        yield
    except TransportError as error:
        if not str(error.request.url).startswith(url):
            raise
        raise AssayError(
            f"the Prefect server at {mask_url(url)} ended while it was used ({error or type(error).__name__}). "
            "Answers and finished stage tables are kept; run the same command again to continue from there."
        ) from error


def _is_url(url: str) -> bool:
    """Return whether a client can parse the URL; a password that contains a slash, for one, is read as a port."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def _is_imported() -> bool:
    return "prefect.settings" in sys.modules


def _has_settings() -> bool:
    if os.environ.get("PREFECT_PROFILE") or os.environ.get("PREFECT_PROFILES_PATH") or Path("prefect.toml").is_file():
        return True
    home = Path(os.environ.get("PREFECT_HOME") or "~/.prefect").expanduser()
    files = (Path(".env"), Path("pyproject.toml"))
    return (home / "profiles.toml").is_file() or any(_mentions_prefect(path) for path in files)


def _mentions_prefect(path: Path) -> bool:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return "PREFECT_" in text or "[tool.prefect" in text
