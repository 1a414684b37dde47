"""Databases: addresses that cannot be read, and layouts of a later release."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import pytest
from sqlalchemy import update

from metric_core.errors import AssayError, ConfigError
from tasks.cache.cache_tables import LAYOUT as CACHE
from tasks.history.history_tables import LAYOUT
from tasks.history.history_tables import LAYOUT as HISTORY
from tasks.runtime.database import Database, Layout
from tasks.runtime.database_address import engine_url
from tests.postgres import new_database, new_schema
from tests.waiting import DEAD_SECONDS


@pytest.mark.parametrize("layout", [CACHE, HISTORY], ids=lambda each: each.purpose)
def test_a_url_that_cannot_be_read_is_not_repeated(layout: Layout) -> None:
    with pytest.raises(ConfigError, match=f"the URL of the {layout.purpose} cannot be read") as caught:
        Database("postgresql+psycopg://me:hunter2@host:port/name", layout)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("layout", [CACHE, HISTORY], ids=lambda each: each.purpose)
def test_tables_of_a_later_release_are_refused(layout: Layout, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    Database(url, layout).write(lambda connection: connection.execute(update(layout.formats).values(version=99)))
    with pytest.raises(AssayError, match=f"the {layout.purpose} .* has format 99, this rag-assay reads 1"):
        Database(url, layout).read(lambda _: None)


def test_a_cache_and_a_history_may_share_a_database(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    for layout in (CACHE, HISTORY):
        names = Database(url, layout).read(lambda connection: connection.dialect.get_table_names(connection))
        assert set(layout.tables.tables) <= set(names)


def test_the_table_of_formats_is_created_last(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        Database(f"sqlite:///{tmp_path / 'x.db'}", LAYOUT).read(lambda _: None)
        query = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
        created = [name for (name,) in connection.execute(query)]
    assert len(created) > 2
    assert created[-1] == LAYOUT.formats.name  # another process that sees it takes all others for granted


def test_several_may_open_a_new_database_of_postgresql_at_once(postgres_server: Path) -> None:
    database = new_database(postgres_server)
    for _ in range(5):
        url = engine_url(new_schema(database))
        barrier = Barrier(8)

        def count_tables(url: str = url, barrier: Barrier = barrier) -> int:
            barrier.wait(DEAD_SECONDS)
            return Database(url, HISTORY).read(lambda connection: len(connection.dialect.get_table_names(connection)))

        with ThreadPoolExecutor(8) as pool:
            counts = [each.result() for each in [pool.submit(count_tables) for _ in range(8)]]
        assert counts == [len(HISTORY.tables.tables)] * 8
