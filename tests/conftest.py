"""Fixtures for the tests of all packages: a Prefect server, a PostgreSQL server and a temporary home."""

import gc
import os
import ssl
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from prefect.logging.handlers import APILogWorker
from prefect.settings import Settings

from deployments.local_server import stop_server, use_server
from tasks.runtime import database
from tests import prefect_servers
from tests.postgres import new_database, prefect_database, programs_for_prefect, running_postgres, start_postgres
from tests.prefect_stub import PrefectStub, use_stub
from tests.sharing import ensure_local_server, prepare_home

pytest_plugins = ("pytester",)

SKIPPED_UNLESS_SELECTED = {
    "removal": "runs all tests without some rooms: run it with `just test-removals`",
    "served": "takes minutes: run it with `just test-served`",
    "simulation": "draws samples, plays nights, or judges what people judged: run it with `just test-simulations`",
}
"""Why tests of a mark are skipped unless `-m` names it."""

# The time that a machine takes to generate an example says nothing about the code.
settings.register_profile("untimed", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture(scope="session", autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Put the table store and the cache of all tests into a temporary folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_HOME", str(tmp_path_factory.mktemp("own-home")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _certificates_read_once() -> Iterator[None]:
    """Read the certificates of the system once: each client of Prefect does, which takes longer than its requests."""
    create = ssl.create_default_context
    read = cache(lambda file: create(cafile=file))

    def create_or_share(*purpose: Any, **more: Any) -> ssl.SSLContext:
        return read(more["cafile"]) if not purpose and list(more) == ["cafile"] else create(*purpose, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", create_or_share)
        yield


@pytest.fixture(scope="session", autouse=True)
def _settings_copied_once() -> Iterator[None]:
    """Copy settings of Prefect once for the same changes and variables: each use of a server does, in 50 ms."""
    copy = Settings.copy_with_update
    known: dict[tuple[Any, ...], tuple[Settings, Settings]] = {}

    def copy_or_share(self: Settings, updates: Any = None, set_defaults: Any = None, **more: Any) -> Settings:
        if set_defaults or any(more.values()):
            return copy(self, updates, set_defaults, **more)
        variables = frozenset(item for item in os.environ.items() if item[0].startswith("PREFECT_"))
        key = (id(self), frozenset((updates or {}).items()), variables, Path.cwd())
        if key not in known:
            known[key] = self, copy(self, updates)  # the original is kept, so that no other one gets its id
        return known[key][1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Settings, "copy_with_update", copy_or_share)
        yield


@pytest.fixture(scope="session", autouse=True)
def _disk_not_awaited() -> Iterator[None]:
    """Leave it to the system when files reach the disk: waiting for it takes longer than many a test."""
    set_up = database._set_up_file

    def set_up_without_flushes(connection: Any, record: Any) -> None:
        connection.execute("PRAGMA synchronous = OFF")
        set_up(connection, record)
        connection.execute("PRAGMA synchronous = OFF")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "_set_up_file", set_up_without_flushes)
        patch.setattr(os, "fsync", lambda _file: None)
        yield


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Path]:
    """Yield the folder of a running PostgreSQL server; stop it when the tests end."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: Path) -> str:
    """Return the URL of an empty PostgreSQL database."""
    return new_database(postgres_server)


@pytest.fixture(scope="session")
def server_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a home with a local Prefect server of this worker, whose database is migrated already."""
    home = tmp_path_factory.mktemp("home")
    prepare_home(tmp_path_factory, home)
    yield home
    APILogWorker.drain_all(timeout=10)  # otherwise the logs of the last flow would be sent to a stopped server
    stop_server(home)


@pytest.fixture(scope="session")
def whole_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a Prefect server with all its services; `tests/scheduling.py` names the files that share it.

    Its database is in PostgreSQL, as servers for schedules and events should be: on SQLite, Prefect handles the events
    of a burst minutes late. It is a SQLite file where no PostgreSQL has the extension that Prefect needs.
    """
    folder, programs = tmp_path_factory.mktemp("whole-server"), programs_for_prefect()
    with ExitStack() as stack:
        database = None
        if programs is None:
            prepare_home(tmp_path_factory, folder)
            stop_server(folder)
            database = f"sqlite+aiosqlite:///{folder / 'prefect' / 'prefect.db'}"
        else:
            database = prefect_database(stack.enter_context(start_postgres(programs)).folder)
        yield stack.enter_context(prefect_servers.prefect_server(folder, database))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Have workers take up slow files first."""
    if config.getoption("dist") != "loadfile":
        return None
    from tests.scheduling import SlowFirst

    config.option.loadscopereorder = False
    return SlowFirst(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip tests of marks that are not selected, and put slow files first where workers share the work."""
    for mark, reason in SKIPPED_UNLESS_SELECTED.items():
        if mark not in str(config.option.markexpr):
            skipped = pytest.mark.skip(reason=reason)
            for item in items:
                if item.get_closest_marker(mark) is not None:
                    item.add_marker(skipped)
    if "PYTEST_XDIST_WORKER" in os.environ:
        from tests.scheduling import find_rank

        items.sort(key=lambda item: find_rank(item.nodeid.partition("::")[0]))


@pytest.fixture
def prefect_server(server_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the API URL of the real Prefect server that flows of the test use; ASSAY_HOME is its home.

    The credentials of the server are in the environment meanwhile.
    """
    monkeypatch.setenv("ASSAY_HOME", str(server_home))
    monkeypatch.setenv("PREFECT_LOGGING_LEVEL", "CRITICAL")
    server = ensure_local_server(server_home)
    with use_server(server):
        yield server.url


@pytest.fixture
def prefect_stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[PrefectStub]:
    """Yield the stub of a Prefect server that flows of the test use."""
    monkeypatch.setenv("PREFECT_LOGGING_LEVEL", "CRITICAL")
    with use_stub() as stub:
        yield stub


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Hide what the imports leave from the garbage collector.

    These are a million objects that stay.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
