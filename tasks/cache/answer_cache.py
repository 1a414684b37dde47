"""Cache values under digests: found and added in bulk, safe to share between processes and machines.

A failure of the cache can cost time, never a result: it is logged once, and the run continues as if the cache were
empty. Values that could not be written wait in memory and are written with later ones. Each value is checked when it
is read; a damaged value is removed and recomputed.
"""

import logging
import sqlite3
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, bindparam, delete, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.sql.dml import Delete, Update

from metric_core.errors import ConfigError
from tasks.cache.cache_tables import ANSWERS, LAYOUT
from tasks.cache.circuit_breaker import CircuitBreaker
from tasks.cache.leases import Leases, release_all
from tasks.cache.write_queue import QueuedValue, WriteQueue
from tasks.runtime.database import Database, Upsert, chunks
from tasks.runtime.database_errors import error_reason

DAMAGE = (ValueError, KeyError, TypeError)
"""Exceptions that a decoder raises for bytes that are not a value."""

MAX_PENDING = 50_000
"""Maximum number of values that wait in memory until the cache can be written again; more are dropped."""

_DAY = 86_400
# Built once: building a statement takes longer than running it.
_FIND = select(ANSWERS.c.key, ANSWERS.c.value, ANSWERS.c.checksum, ANSWERS.c.used).where(
    ANSWERS.c.key.in_(bindparam("keys"))
)
_logger = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of the answers table, and whether it replaces a row with the same key."""

    values: Mapping[str, Any]
    replaces: bool


class AnswerCache:
    """A cache of model outputs under the digests of all that determines them. May be used from several threads.

    Several processes and machines may share one cache. The database is opened when it is first used.

    Args:
        url: `sqlite:///path` or `postgresql+psycopg://...`, as SQLAlchemy takes it.
    """

    def __init__(self, url: str) -> None:
        self.database = Database(url, LAYOUT)
        self._breaker = CircuitBreaker(self.database)
        self.leases = Leases(self.database, self._breaker)
        """Leases on the answers that are being computed."""
        self.damaged = 0
        """Number of damaged values found so far."""
        self.queue = WriteQueue()
        """The values that are being computed, on their way to the database."""
        insertion = self.database.insert(ANSWERS)
        new = {column.name: insertion.excluded[column.name] for column in ANSWERS.c if not column.primary_key}
        self._insert = Upsert(insertion.on_conflict_do_nothing())
        self._replace = Upsert(insertion.on_conflict_do_update(index_elements=["key"], set_=new))
        self._pending: dict[bytes, _Row] = {}

    def ensure(self) -> None:
        """Check that the cache can be used.

        Raises:
            AssayError: The cache cannot be used; the message says why.
        """
        try:
            self.database.write(lambda connection: connection.execute(delete(ANSWERS).where(ANSWERS.c.key == b"")))
        except (SQLAlchemyError, sqlite3.Error, OSError) as error:
            raise ConfigError(
                f"the answer cache {self.database.name} cannot be used: {error_reason(error)}. "
                "Correct this, or leave `cache` out to use a file in ASSAY_HOME."
            ) from error

    def find(self, keys: Sequence[bytes], decode: Callable[[bytes], T]) -> dict[bytes, T]:
        """Return the cached values by their keys; missing keys are left out.

        Args:
            keys: Digests of 32 bytes.
            decode: Function from bytes to the value; raises one of DAMAGE for other bytes.
        """
        values: dict[bytes, T] = {}
        damaged: list[bytes] = []
        stale: list[bytes] = []
        yesterday = time.time() - _DAY

        def work(connection: Connection) -> None:
            damaged.clear()  # a busy database repeats the work
            stale.clear()
            for chunk in chunks(keys):
                for key, value, checksum, used in connection.execute(_FIND, {"keys": chunk}):
                    try:
                        values[key] = decode(require_intact(key, value, checksum))
                    except DAMAGE:
                        damaged.append(key)
                    if used < yesterday:
                        stale.append(key)

        if keys:
            self._breaker.call("reading", lambda: self.database.read(work), None)
        pending = self._pending
        values |= {key: decode(pending[key].values["value"]) for key in keys if key in pending and key not in values}
        self._remove_damaged(damaged)
        now = int(time.time())
        # At most once a day per value, so that reading seldom writes.
        self._change(stale, lambda chunk: update(ANSWERS).where(ANSWERS.c.key.in_(chunk)).values(used=now))
        return values

    def add(self, step: str, values: Mapping[bytes, bytes], owner: str | None = None, *, replace: bool = False) -> None:
        """Add values, and end the leases on them.

        Args:
            step: Kind of the values, for statistics.
            values: Bytes of each value by its key.
            owner: Owner of the leases on the values; None without leases.
            replace: True to replace cached values.
        """
        now = int(time.time())
        rows = {key: _row(step, key, value, now, replace) for key, value in values.items()}
        self._write(rows, {} if owner is None else {owner: list(values)})

    def write_queued(self, values: Sequence[QueuedValue]) -> None:
        """Add values of several owners in one transaction, and end the leases on them.

        Args:
            values: Values; of two with the same key the last one counts.
        """
        now = int(time.time())
        held: dict[str, list[bytes]] = {}
        for value in values:
            held.setdefault(value.owner, []).append(value.key)
        self._write({one.key: _row(one.step, one.key, one.value, now, one.replaces) for one in values}, held)

    def _write(self, rows: "Mapping[bytes, _Row]", held: Mapping[str, Sequence[bytes]]) -> None:
        with self.database.lock:
            unwritten, self._pending = self._pending, {}
        unwritten.update(rows)

        def work(connection: Connection) -> bool:
            ordered = [unwritten[key] for key in sorted(unwritten)]
            for insertion, replaces in ((self._insert, False), (self._replace, True)):
                if some := [row.values for row in ordered if row.replaces is replaces]:
                    insertion.execute(connection, some)
            for owner, keys in held.items():
                release_all(connection, keys, owner)
            return True

        if unwritten and not self._breaker.call("writing", lambda: self.database.write(work), False):
            self._defer(unwritten)

    def flush(self) -> None:
        """Write the pending values at the end of a run; log a warning if they cannot be written."""
        if not self._pending:
            return
        self._breaker.reset()
        self.add("", {})
        if count := len(self._pending):
            _logger.warning(
                "%d answers could not be written to the answer cache %s; a run that needs them asks again",
                count,
                self.database.name,
            )

    def _defer(self, rows: "dict[bytes, _Row]") -> None:
        """Hold rows in memory that could not be written, at most the first MAX_PENDING of them."""
        with self.database.lock:
            rows.update(self._pending)
            self._pending = rows if len(rows) <= MAX_PENDING else dict(islice(rows.items(), MAX_PENDING))

    def _remove_damaged(self, damaged: Sequence[bytes]) -> None:
        if not damaged:
            return
        with self.database.lock:
            first = self.damaged == 0
            self.damaged += len(damaged)
        if first:
            _logger.warning(
                "the answer cache %s contains damaged values; they are removed and recomputed", self.database.name
            )
        self._change(damaged, lambda chunk: delete(ANSWERS).where(ANSWERS.c.key.in_(chunk)))

    def _change(self, keys: Sequence[bytes], statement_for: Callable[[Sequence[bytes]], Delete | Update]) -> None:
        for statement in map(statement_for, chunks(keys)):
            self._execute(statement)

    def _execute(self, statement: Delete | Update) -> None:
        self._breaker.call("writing", lambda: self.database.write(lambda c: c.execute(statement)), None)


def _row(step: str, key: bytes, value: bytes, now: int, replaces: bool) -> _Row:
    checksum = checksum_bytes(key, value)
    values = {"key": key, "step": step, "checksum": checksum, "created": now, "used": now, "value": value}
    return _Row(values, replaces)


def checksum_bytes(key: bytes, value: bytes) -> int:
    """Return the CRC-32 of a key and its value.

    >>> checksum_bytes(b"key", b"value") == checksum_bytes(b"key", b"valve")
    False
    """
    return zlib.crc32(value, zlib.crc32(key))


def require_intact(key: bytes, value: bytes, checksum: int) -> bytes:
    """Return the value if it has the checksum.

    Raises:
        ValueError: The checksum does not match.
    """
    if checksum_bytes(key, value) != checksum:
        raise ValueError("the checksum does not match")
    return value
