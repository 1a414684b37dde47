"""What tests of all packages share: a Prefect server for flows, and a home that is nobody's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from prefect.logging.handlers import APILogWorker

from deployments.local_server import ensure_server, stop_server, use_server
from tests.postgres import new_database, running_postgres

# How long a machine takes to make up an example is no finding.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture(scope="session", autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Stores and caches of tests lie in a folder of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_HOME", str(tmp_path_factory.mktemp("own-home")))
        yield


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Path]:
    """The folder of a running PostgreSQL server, stopped when the tests end."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: Path) -> str:
    """The URL of an empty PostgreSQL database."""
    return new_database(postgres_server)


@pytest.fixture(scope="session")
def server_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with a running kept server, stopped when the tests end."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PREFECT_API_URL", raising=False)
        ensure_server(home)
    yield home
    APILogWorker.drain_all()  # or the log of the last flow would look for the server after its end
    stop_server(home)


@pytest.fixture
def prefect_server(server_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The API URL of a real Prefect server that flows in this test use; ASSAY_HOME is its home."""
    monkeypatch.setenv("ASSAY_HOME", str(server_home))
    monkeypatch.setenv("PREFECT_LOGGING_LEVEL", "CRITICAL")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PREFECT_API_URL", raising=False)
        url = ensure_server(server_home)
    with use_server(url):
        yield url
