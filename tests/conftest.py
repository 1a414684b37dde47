"""Fixtures for the tests of all packages: a Prefect server, a PostgreSQL server and a temporary home."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from prefect.logging.handlers import APILogWorker

from deployments.local_server import ensure_server, stop_server, use_server
from tests.postgres import new_database, running_postgres

# The time that a machine takes to generate an example says nothing about the code.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture(scope="session", autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Put the table store and the cache of all tests into a temporary folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_HOME", str(tmp_path_factory.mktemp("own-home")))
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
    """Yield a home with a running local Prefect server; stop it when the tests end."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PREFECT_API_URL", raising=False)
        ensure_server(home)
    yield home
    APILogWorker.drain_all()  # otherwise the logs of the last flow would be sent to a stopped server
    stop_server(home)


@pytest.fixture
def prefect_server(server_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the API URL of the real Prefect server that flows of the test use; ASSAY_HOME is its home."""
    monkeypatch.setenv("ASSAY_HOME", str(server_home))
    monkeypatch.setenv("PREFECT_LOGGING_LEVEL", "CRITICAL")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PREFECT_API_URL", raising=False)
        url = ensure_server(server_home)
    with use_server(url):
        yield url
