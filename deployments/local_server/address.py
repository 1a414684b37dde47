"""Which Prefect server a run talks to: the one in the user's own Prefect settings, or the kept one."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

API_URL = "PREFECT_API_URL"


def configured_api_url() -> str | None:
    """The server that the user's Prefect settings name, or None.

    Importing Prefect takes most of a second, so it is only asked where there is something to ask about: a profile, or
    a settings file that speaks of Prefect.
    """
    url = os.environ.get(API_URL)
    if url or not (_is_imported() or _has_settings()):
        return url or None
    from prefect.settings import get_current_settings  # noqa: PLC0415 slow, and seldom needed

    return get_current_settings().api.url


def shown_url(url: str) -> str:
    """An API URL for messages, without a user and password that it may hold.

    >>> shown_url("https://me:hunter2@prefect.example/api")
    'https://prefect.example/api'
    """
    scheme, separator, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}{separator}{place.rpartition('@')[2]}{slash}{path}"


@contextmanager
def use_server(url: str) -> Iterator[None]:
    """Lets the flows that run inside talk to this server; best entered before Prefect is imported.

    On the kept server the runs send no heartbeats. Nothing there listens to them, and the thread that sends them holds
    up the end of each flow run by a second.

    Args:
        url: an API URL, as `ensure_server` returns it.
    """
    is_kept = configured_api_url() != url
    before = {name: os.environ.get(name) for name in (API_URL, "DO_NOT_TRACK")}
    os.environ[API_URL] = url  # for processes that the run starts, and for the first import of Prefect
    os.environ.setdefault("DO_NOT_TRACK", "1")
    try:
        from prefect.settings import PREFECT_API_URL, temporary_settings  # noqa: PLC0415 must see the lines above
        from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY as HEARTBEAT  # noqa: PLC0415

        with temporary_settings({PREFECT_API_URL: url} | ({HEARTBEAT: None} if is_kept else {})):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


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
