"""The database below the store of answers: one way to open it, to ask it, and to be patient with it.

SQLite and PostgreSQL differ in how a file is prepared, in the name of their clock, and in what a busy database says;
all of that is here.
"""

import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Engine, Table, create_engine, event, inspect, literal_column, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateTable

from metric_core.errors import AssayError, MissingDependencyError
from tasks.cache.cache_tables import FORMAT, FORMATS, METADATA
from tasks.runtime.retry import Backoff, retry

T = TypeVar("T")

CHUNK = 500
"""Keys a statement: the oldest SQLite takes 999 values."""

_BUSY_TIMEOUT = 30.0
_CONNECT_TIMEOUT = 5
_BACKOFF = Backoff(first=0.01, longest=0.5, jitter=1.0)
# States of PostgreSQL where two writers conflict: serialization failure, deadlock, lock not available, and a name or
# key that another process has just created.
_CONFLICTS = frozenset({"40001", "40P01", "55P03", "23505", "42P07"})
_databases: "weakref.WeakSet[Database]" = weakref.WeakSet()
_CLOCKS = {
    "sqlite": "(julianday('now') - 2440587.5) * 86400.0",
    "postgresql": "extract(epoch from clock_timestamp())",
}


class Database:
    """A SQLite file or a PostgreSQL database. May be used from several threads, processes and machines.

    Args:
        url: for SQLAlchemy.
    """

    def __init__(self, url: str) -> None:
        self._url = make_url(url)
        self._engine: Engine | None = None
        self._process = os.getpid()
        self._opening = Lock()
        self.lock = Lock()
        """For what users of the database keep in memory."""
        _databases.add(self)
        self.name = self._url.render_as_string(hide_password=True)
        """Where it is, without its password."""
        self.is_sqlite = self._url.get_backend_name() == "sqlite"
        self.clock: ColumnElement[float] = literal_column(_CLOCKS["sqlite" if self.is_sqlite else "postgresql"])
        """The database's own time, in seconds since 1970: the clocks of several machines need not agree."""

    def insert(self, table: Table) -> "sqlite.Insert | postgresql.Insert":
        """An insertion that can say what to do about keys that are there."""
        return sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)

    def read(self, work: Callable[[Connection], T]) -> T:
        """The result of work that changes nothing."""
        return self._retry(lambda: self._in(work, isolation_level="AUTOCOMMIT"))

    def write(self, work: Callable[[Connection], T]) -> T:
        """The result of work that is done as a whole or not at all; it may be tried several times."""
        return self._retry(lambda: self._in(work))

    def _in(self, work: Callable[[Connection], T], **options: Any) -> T:
        with self._opened().execution_options(**options).begin() as connection:
            return work(connection)

    def _retry(self, work: Callable[[], T]) -> T:
        deadline = time.monotonic() + _BUSY_TIMEOUT

        def pause_after(error: Exception, attempt: int) -> float | None:
            if not isinstance(error, DBAPIError):
                return None
            lost_once = error.connection_invalidated and attempt == 1
            is_passing = lost_once or (_is_busy(error) and time.monotonic() < deadline)
            return _BACKOFF.seconds(attempt) if is_passing else None

        return retry(work, pause_after)

    def _opened(self) -> Engine:
        """The engine of this process: connections must not be shared with a process that it was forked from."""
        with self._opening:
            if self._engine is None or self._process != os.getpid():
                engine = self._created()
                try:
                    with engine.begin() as connection:
                        _prepare(connection, self)
                except BaseException:
                    engine.dispose()
                    raise
                weakref.finalize(self, _dispose, engine, os.getpid())
                self._engine, self._process = engine, os.getpid()
            return self._engine

    def unlocked(self) -> None:
        """Forgets locks that a thread held when this process was forked: that thread is not here to let go of them."""
        self._opening = Lock()
        self.lock = Lock()

    def _created(self) -> Engine:
        if self.is_sqlite:
            if self._url.database:
                Path(self._url.database).parent.mkdir(parents=True, exist_ok=True)
            engine = create_engine(self._url, connect_args={"timeout": _BUSY_TIMEOUT}, max_overflow=-1)
            event.listen(engine, "connect", _set_up_file)
            return engine
        try:
            return create_engine(self._url, connect_args={"connect_timeout": _CONNECT_TIMEOUT}, max_overflow=-1)
        except ModuleNotFoundError as error:
            raise MissingDependencyError(
                "psycopg", "a store of answers in PostgreSQL", "pip install 'rag-assay[postgres]'"
            ) from error


def _unlock_all() -> None:
    for database in _databases:
        database.unlocked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_all)


def _dispose(engine: Engine, process: int) -> None:
    """Closes the connections, unless they belong to the process that this one was forked from."""
    engine.dispose(close=process == os.getpid())


def chunks(keys: Sequence[bytes]) -> list[Sequence[bytes]]:
    """The keys in the portions that one statement takes, in one order for all: so nobody waits for each other."""
    ordered = sorted(keys)
    return [ordered[start : start + CHUNK] for start in range(0, len(ordered), CHUNK)]


def _set_up_file(connection: Any, _record: Any) -> None:
    # The first one works on a new file only, and only before the second.
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA cache_size = -32768")


def _prepare(connection: Connection, database: Database) -> None:
    """Makes the tables of a new store; refuses one whose tables are of a later format."""
    if not inspect(connection).has_table(FORMATS.name):
        for table in METADATA.sorted_tables:
            connection.execute(CreateTable(table, if_not_exists=True))
        connection.execute(database.insert(FORMATS).values(version=FORMAT).on_conflict_do_nothing())
    version = connection.execute(select(FORMATS.c.version)).scalar()
    if version is not None and version > FORMAT:
        raise AssayError(
            f"the store of answers {database.name} has format {version}, this rag-assay reads {FORMAT}. "
            "Install a newer rag-assay, or name another store in answers."
        )


def _is_busy(error: DBAPIError) -> bool:
    """Whether somebody else was in the way, so that the same can work a moment later."""
    if isinstance(error.orig, sqlite3.Error):
        code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
        return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return getattr(error.orig, "sqlstate", None) in _CONFLICTS
