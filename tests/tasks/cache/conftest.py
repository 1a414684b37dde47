"""Stores for tests: most tests run on a SQLite file and on a PostgreSQL server."""

from pathlib import Path

import pytest

from tasks.cache.answer_cache import AnswerCache
from tasks.cache.cache_address import engine_url
from tests.postgres import new_database, new_schema


@pytest.fixture(scope="session")
def postgres_database(postgres_server: Path) -> str:
    """The URL of a database that the tests of stores share."""
    return new_database(postgres_server)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty store is, as SQLAlchemy takes it."""
    if request.param == "sqlite":
        return engine_url(str(tmp_path / "answers.db"))
    return engine_url(new_schema(request.getfixturevalue("postgres_database")))


@pytest.fixture
def store(url: str) -> AnswerCache:
    """An empty store."""
    return AnswerCache(url)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of a SQLite store."""
    return tmp_path / "answers.db"


@pytest.fixture
def file_store(path: Path) -> AnswerCache:
    """An empty SQLite store."""
    return AnswerCache(engine_url(str(path)))
