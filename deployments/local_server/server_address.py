"""Which Prefect server a run talks to: the one in the user's own Prefect settings, or the kept one."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from metric_core.errors import AssayError, ConfigError
from tasks.runtime.telemetry import DO_NOT_TRACK, disable_telemetry

API_URL = "PREFECT_API_URL"

KEPT_RETRIES = 3
"""How often a request to the kept server is repeated, after some 2, 4 and 8 s: it may be busy, or it has ended."""


def find_configured_url() -> str | None:
    """The server that the user's Prefect settings name, or None.

    Importing Prefect takes most of a second, so it is only asked where there is something to ask about: a profile, or
    a settings file that speaks of Prefect.

    Raises:
        ConfigError: what they name is no URL of a server.
    """
    url = os.environ.get(API_URL)
    if not url and (_is_imported() or _has_settings()):
        from prefect.settings import get_current_settings  # noqa: PLC0415 slow, and seldom needed

        url = get_current_settings().api.url
    if url and not _is_url(url):
        raise ConfigError(missing_url_error(url))
    return url or None


def missing_url_error(url: str) -> str:
    """What to say of a setting that is no URL of a server.

    >>> missing_url_error("http://[/api")
    "PREFECT_API_URL must be like http://127.0.0.1:4200/api, got 'http://[/api'"
    """
    hint = ". It has a user or a password, not shown here; in those, percent-encode / : @ [ ]" if "@" in url else ""
    return f"{API_URL} must be like http://127.0.0.1:4200/api, got {mask_url(url)!r}{hint}"


def mask_url(url: str) -> str:
    """An API URL for messages, without a user and password that it may hold, be they written as they must or not.

    >>> mask_url("https://me:hunter2@prefect.example/api"), mask_url("http://me:hun/ter2@prefect.example/api")
    ('https://prefect.example/api', 'http://prefect.example/api')
    """
    scheme, separator, rest = url.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


@contextmanager
def use_server(url: str) -> Iterator[None]:
    """Lets the flows that run inside talk to this server; best entered before Prefect is imported.

    On the kept server the runs send no heartbeats. Nothing there listens to them, and the thread that sends them holds
    up the end of each flow run by a second. Nor do they try long to reach it: where the kept server does not answer, it
    has ended, and each request of the run's end would wait a minute for it.

    Args:
        url: an API URL, as `ensure_server` returns it.

    Raises:
        AssayError: the server went away while it was used.
    """
    is_kept = find_configured_url() != url
    before = {name: os.environ.get(name) for name in (API_URL, *DO_NOT_TRACK)}
    os.environ[API_URL] = url  # for processes that the run starts, and for the first import of Prefect
    disable_telemetry(DO_NOT_TRACK)
    try:
        from prefect.settings import PREFECT_API_URL, temporary_settings  # noqa: PLC0415 must see the lines above
        from prefect.settings import PREFECT_CLIENT_MAX_RETRIES as RETRIES  # noqa: PLC0415
        from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY as HEARTBEAT  # noqa: PLC0415

        of_kept = {HEARTBEAT: None, RETRIES: KEPT_RETRIES}
        with temporary_settings({PREFECT_API_URL: url} | (of_kept if is_kept else {})), _explain_lost_server(url):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _explain_lost_server(url: str) -> Iterator[None]:
    """Has an error of the network on the way to this server say what is left of the work."""
    from httpx import TransportError  # noqa: PLC0415 comes with Prefect

    try:
        yield
    except TransportError as error:
        if not str(error.request.url).startswith(url):
            raise
        raise AssayError(
            f"the Prefect server at {mask_url(url)} has gone while it was used ({error or type(error).__name__}). "
            "Answers and finished stage tables are kept, and the same command goes on from there."
        ) from error


def _is_url(url: str) -> bool:
    """Whether a client can make something of it; a password with a slash in it is taken for a port, for one."""
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
    return (home / "profiles.toml").is_file() or any(_speaks_of_prefect(path) for path in files)


def _speaks_of_prefect(path: Path) -> bool:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return "PREFECT_" in text or "[tool.prefect" in text
