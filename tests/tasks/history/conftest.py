"""Histories for tests: most tests run on a SQLite file and on a PostgreSQL server."""

from pathlib import Path

import pytest

from tasks.history.catalogue import Catalogue
from tests.postgres import new_database, new_schema


@pytest.fixture(scope="session")
def postgres_database(postgres_server: Path) -> str:
    """Return the URL of a database that the tests of the history share."""
    return new_database(postgres_server)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of an empty history."""
    if request.param == "sqlite":
        return str(tmp_path / "history.db")
    return new_schema(request.getfixturevalue("postgres_database"))


@pytest.fixture
def catalogue(url: str) -> Catalogue:
    """Return an empty history."""
    return Catalogue(url)
