"""Open and query a database, and retry while it is busy.

This module holds all differences between SQLite and PostgreSQL: the preparation of a file, the name of the clock, and
the errors of a busy database.
"""

import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Compiled,
    Connection,
    Engine,
    MetaData,
    Table,
    create_engine,
    event,
    func,
    inspect,
    literal_column,
    select,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.schema import CreateIndex, CreateTable

from metric_core.errors import AssayError, ConfigError, MissingDependencyError
from tasks.runtime.atomic_files import create_private_file
from tasks.runtime.retry import Backoff, retry

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

T = TypeVar("T")

CHUNK = 500
"""Keys per statement: the oldest SQLite accepts 999 values."""

_BUSY_TIMEOUT = 30.0
_CONNECT_TIMEOUT = 5
_BACKOFF = Backoff(first=0.01, longest=0.5, jitter=1.0)
# States of PostgreSQL where two writers conflict: serialization failure, deadlock, lock not available, and a name or
# key that another process has just created.
_CONFLICTS = frozenset({"40001", "40P01", "55P03", "23505", "42P07"})
_LOCK_OF_NEW_TABLES = 0x61737361
"""Key of the advisory lock of PostgreSQL under which tables are created."""
_databases: "weakref.WeakSet[Database]" = weakref.WeakSet()
_CLOCKS = {
    "sqlite": "(julianday('now') - 2440587.5) * 86400.0",
    "postgresql": "extract(epoch from clock_timestamp())",
}


@dataclass(frozen=True, slots=True)
class Layout:
    """The tables of a database, and the words of messages about it.

    Args:
        purpose: Purpose of the database, as in "the cache"; also the name of the option that sets it.
        formats: The table with the one column `version`, which holds the format of the tables.
        version: Format of the tables, incremented with each change.
    """

    purpose: str
    tables: MetaData
    formats: Table
    version: int


class Database:
    """A SQLite file or a PostgreSQL database. Several threads, processes and machines may use it.

    Args:
        layout: Tables of the database, which are created where they are missing.

    Raises:
        ConfigError: The URL cannot be read.
    """

    def __init__(self, url: str, layout: Layout) -> None:
        self.layout = layout
        try:
            self._url = make_url(url)
        except (SQLAlchemyError, ValueError):
            raise ConfigError(
                f"the URL of the {layout.purpose} cannot be read; write it like postgresql://user@host:5432/database, "
                "with special characters in percent-encoding"
            ) from None  # the first error may repeat a password
        self._engine: Engine | None = None
        self._reading: Engine | None = None
        self._process = os.getpid()
        self._opening = Lock()
        self._writing = Lock()
        self.lock = Lock()
        """A lock for data that users of the database hold in memory."""
        _databases.add(self)
        self.name = self._url.render_as_string(hide_password=True)
        """The URL of the database without its password."""
        self.is_sqlite = self._url.get_backend_name() == "sqlite"
        self.clock: ColumnElement[float] = literal_column(_CLOCKS["sqlite" if self.is_sqlite else "postgresql"])
        """The time of the database, in seconds since 1970: clocks of several machines may differ."""

    def insert(self, table: Table) -> "sqlite.Insert | postgresql.Insert":
        """Return an INSERT statement that supports ON CONFLICT."""
        if self.is_sqlite:
            from sqlalchemy.dialects import sqlite  # noqa: PLC0415 importing both takes a tenth of a second

            return sqlite.insert(table)
        from sqlalchemy.dialects import postgresql  # noqa: PLC0415

        return postgresql.insert(table)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Return the result of work that changes nothing.

        Args:
            work: Function of a connection; it may be called several times.
        """
        return self._retry(lambda: self._run(work, self._open(reading=True)))

    def maintain(self, work: Callable[[Connection], T]) -> T:
        """Return the result of work that measures or cleans a whole table, which may take long.

        Args:
            work: Function of a connection; it may be called several times.
        """
        if self.is_sqlite:
            return self.read(work)
        from tasks.runtime import guarded_connection as guarded  # noqa: PLC0415 loads the driver of an extra

        def work_patiently(connection: Connection) -> T:
            raw: Any = connection.connection.dbapi_connection
            raw.limit_statements(guarded.MAINTENANCE_SECONDS)
            try:
                return work(connection)
            finally:
                if not raw.closed:
                    raw.limit_statements(guarded.ANSWER_SECONDS)

        return self.read(work_patiently)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Return the result of work that is done in one transaction.

        Args:
            work: Function of a connection; it may be called several times.
        """
        # Writers of a file exclude each other anyway; those of one process need not poll for their turn.
        with self._writing if self.is_sqlite else nullcontext():
            return self._retry(lambda: self._run(work, self._open()))

    def _run(self, work: Callable[[Connection], T], engine: Engine) -> T:
        with engine.begin() as connection:
            return work(connection)

    def _retry(self, work: Callable[[], T]) -> T:
        deadline = time.monotonic() + _BUSY_TIMEOUT

        def pause_after(error: Exception, attempt: int) -> float | None:
            if not isinstance(error, DBAPIError):
                return None
            lost_once = error.connection_invalidated and attempt == 1
            is_transient = lost_once or (_is_busy(error) and time.monotonic() < deadline)
            return _BACKOFF.seconds(attempt) if is_transient else None

        return retry(work, pause_after)

    def _open(self, *, reading: bool = False) -> Engine:
        """Return the engine of this process: connections must not be shared with the process it was forked from.

        Args:
            reading: If true, return one that commits each statement, for work that changes nothing.
        """
        with self._opening:
            if self._engine is None or self._reading is None or self._process != os.getpid():
                engine = self._create_engine()
                try:
                    with engine.begin() as connection:
                        _prepare(connection, self)
                except BaseException:
                    engine.dispose()
                    raise
                weakref.finalize(self, _dispose, engine, os.getpid())
                self._engine, self._process = engine, os.getpid()
                self._reading = engine.execution_options(isolation_level="AUTOCOMMIT")
            return self._reading if reading else self._engine

    def reset_locks(self) -> None:
        """Replace the locks after a fork: the thread that holds them does not exist in this process."""
        self._opening = Lock()
        self._writing = Lock()
        self.lock = Lock()

    def _create_engine(self) -> Engine:
        if self.is_sqlite:
            if self._url.database:
                create_private_file(Path(self._url.database))
            engine = create_engine(self._url, connect_args={"timeout": _BUSY_TIMEOUT}, max_overflow=-1)
            event.listen(engine, "connect", _set_up_file)
            return engine
        try:
            engine = create_engine(self._url, connect_args={"connect_timeout": _CONNECT_TIMEOUT}, max_overflow=-1)
        except ModuleNotFoundError as error:
            raise MissingDependencyError(
                "psycopg", f"a {self.layout.purpose} in PostgreSQL", "pip install 'rag-assay[postgres]'"
            ) from error
        event.listen(engine, "do_connect", _connect_to_server)
        return engine


class Upsert:
    """An INSERT statement with ON CONFLICT, for many rows, that is compiled once.

    SQLAlchemy compiles such a statement each time that it is executed.

    Args:
        statement: Statement from `Database.insert`, whose only parameters are the values of a row.
    """

    def __init__(self, statement: "sqlite.Insert | postgresql.Insert") -> None:
        self._statement = statement
        self._compiled: Compiled | None = None

    def execute(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows; at least one, all with the same columns."""
        if self._compiled is None:
            self._compiled = self._statement.compile(dialect=connection.dialect, column_keys=[*rows[0]])
        order: Sequence[str] | None = getattr(self._compiled, "positiontup", None)
        given: Any = rows if order is None else [tuple([row[name] for name in order]) for row in rows]
        connection.exec_driver_sql(str(self._compiled), given)


def _unlock_all() -> None:
    for database in _databases:
        database.reset_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_all)


def _dispose(engine: Engine, process: int) -> None:
    """Close the connections, unless they belong to the process that this one was forked from."""
    engine.dispose(close=process == os.getpid())


def chunks(keys: Sequence[bytes]) -> list[Sequence[bytes]]:
    """Split keys into portions for one statement each, in the same order for all processes, which avoids deadlocks."""
    ordered = sorted(keys)
    return [ordered[start : start + CHUNK] for start in range(0, len(ordered), CHUNK)]


def _connect_to_server(_dialect: Any, _record: Any, arguments: Sequence[Any], parameters: dict[str, Any]) -> Any:
    from tasks.runtime.guarded_connection import connect  # noqa: PLC0415 loads the driver of an extra

    return connect(*arguments, **parameters)


def _set_up_file(connection: Any, _record: Any) -> None:
    # The first pragma has an effect on a new file only, and only before the second.
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA cache_size = -32768")


def _prepare(connection: Connection, database: Database) -> None:
    """Create the tables that a database lacks; refuse one whose tables have a later format."""
    layout = database.layout
    found = inspect(connection)
    is_new = not found.has_table(layout.formats.name)
    if not is_new:
        version = connection.execute(select(layout.formats.c.version)).scalar()
        if version is not None and version > layout.version:
            raise AssayError(
                f"the {layout.purpose} {database.name} has format {version}, this rag-assay reads {layout.version}. "
                f"Install a newer rag-assay, or set `{layout.purpose}` to another {layout.purpose}."
            )
    if not all(found.has_table(table.name) for table in layout.tables.sorted_tables):
        if not database.is_sqlite:
            # "If not exists" does not help two that create a table of PostgreSQL at the same time: one of them fails.
            connection.execute(select(func.pg_advisory_xact_lock(_LOCK_OF_NEW_TABLES)))
        # SQLite makes each table visible at once: whoever sees the table of formats finds those of its format, too.
        for table in sorted(layout.tables.sorted_tables, key=lambda each: each is layout.formats):
            connection.execute(CreateTable(table, if_not_exists=True))
            for index in table.indexes:
                connection.execute(CreateIndex(index, if_not_exists=True))
    if is_new:
        connection.execute(database.insert(layout.formats).values(version=layout.version).on_conflict_do_nothing())


def _is_busy(error: DBAPIError) -> bool:
    """Return whether another user of the database was in the way, so that the work may succeed a moment later."""
    if isinstance(error.orig, sqlite3.Error):
        code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
        return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return getattr(error.orig, "sqlstate", None) in _CONFLICTS
