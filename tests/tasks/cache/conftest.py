"""Caches for tests: most tests run on a SQLite file and on a PostgreSQL server."""

from pathlib import Path

import pytest

from tasks.cache.answer_cache import AnswerCache
from tasks.runtime.database_address import engine_url
from tests.postgres import new_database, new_schema


@pytest.fixture(scope="session")
def postgres_database(postgres_server: Path) -> str:
    """Return the URL of a database that the cache tests share."""
    return new_database(postgres_server)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the SQLAlchemy URL of an empty cache."""
    if request.param == "sqlite":
        return engine_url(str(tmp_path / "answers.db"))
    return engine_url(new_schema(request.getfixturevalue("postgres_database")))


@pytest.fixture
def cache(url: str) -> AnswerCache:
    """Return an empty cache."""
    return AnswerCache(url)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the file of a SQLite cache."""
    return tmp_path / "answers.db"


@pytest.fixture
def file_cache(path: Path) -> AnswerCache:
    """Return an empty SQLite cache."""
    return AnswerCache(engine_url(str(path)))
