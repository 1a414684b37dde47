"""The store of answers: values under digests, found and added in bulk, safe to share.

A store can cost time, never a result: what goes wrong with it while a run is under way is told once, and the run goes
on as if the store were empty. What could not be written waits in memory, and is written with what comes later. A value
is checked when it is read; a damaged one is removed and computed anew.
"""

import logging
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.sql.dml import Delete, Update

from metric_core.errors import ConfigError
from tasks.cache.cache_tables import ANSWERS
from tasks.cache.circuit_breaker import CircuitBreaker, error_reason
from tasks.cache.database import Database, chunks
from tasks.cache.leases import Leases, release_all

DAMAGE = (ValueError, KeyError, TypeError)
"""What a decoder raises for bytes that are no value."""

MOST_LATE = 50_000
"""Values that wait in memory until the store can be written again; more are not kept."""

_DAY = 86_400
_logger = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of the table of answers, and whether it takes the place of one that is there."""

    values: Mapping[str, Any]
    replaces: bool


class AnswerCache:
    """Values of models under the digests of all that determines them. May be used from several threads.

    Several processes and machines may use one store. Nothing is opened before it is used.

    Args:
        url: `sqlite:///path` or `postgresql+psycopg://...`, as SQLAlchemy takes it.
    """

    def __init__(self, url: str) -> None:
        self.database = Database(url)
        self._guard = CircuitBreaker(self.database)
        self.leases = Leases(self.database, self._guard)
        """Who is computing which answer."""
        self.damaged = 0
        """Values that were found damaged so far."""
        self._late: dict[bytes, _Row] = {}

    def ensure(self) -> None:
        """Makes sure that the store can be used.

        Raises:
            AssayError: it can not; the message says why.
        """
        try:
            self.database.write(lambda connection: connection.execute(delete(ANSWERS).where(ANSWERS.c.key == b"")))
        except (SQLAlchemyError, OSError) as error:
            raise ConfigError(
                f"the store of answers {self.database.name} can not be used: {error_reason(error)}. "
                "See to it, or leave `answers` out for a file in ASSAY_HOME."
            ) from error

    def find(self, keys: Sequence[bytes], decode: Callable[[bytes], T]) -> dict[bytes, T]:
        """Those of the values that are there.

        Args:
            keys: digests of 32 bytes.
            decode: makes a value of its bytes, or raises one of DAMAGE.
        """
        found: dict[bytes, T] = {}
        damaged: list[bytes] = []
        stale: list[bytes] = []
        wanted = select(ANSWERS.c.key, ANSWERS.c.value, ANSWERS.c.checksum, ANSWERS.c.used)
        yesterday = time.time() - _DAY

        def work(connection: Connection) -> None:
            for chunk in chunks(keys):
                for key, value, checksum, used in connection.execute(wanted.where(ANSWERS.c.key.in_(chunk))):
                    try:
                        found[key] = decode(keep_intact(key, value, checksum))
                    except DAMAGE:
                        damaged.append(key)
                    if used < yesterday:
                        stale.append(key)

        if keys:
            self._guard.asked("reading", lambda: self.database.read(work), None)
        late = self._late
        found |= {key: decode(late[key].values["value"]) for key in keys if key in late and key not in found}
        self._drop(damaged)
        now = int(time.time())
        # At most once a day for each value, so that reading seldom writes.
        self._change(stale, lambda chunk: update(ANSWERS).where(ANSWERS.c.key.in_(chunk)).values(used=now))
        return found

    def add(self, step: str, values: Mapping[bytes, bytes], owner: str | None = None, *, replace: bool = False) -> None:
        """Keeps values, and ends the claims on them.

        Args:
            step: what they are, for statistics.
            values: the bytes of each value by its key.
            owner: who claimed them.
            replace: replace values that are there; else those stay.
        """
        now = int(time.time())
        rows = {
            key: _Row(
                {
                    "key": key,
                    "step": step,
                    "checksum": checksum_bytes(key, value),
                    "created": now,
                    "used": now,
                    "value": value,
                },
                replace,
            )
            for key, value in values.items()
        }
        with self.database.lock:
            late, self._late = self._late, {}
        late.update(rows)

        def work(connection: Connection) -> bool:
            ordered = [late[key] for key in sorted(late)]
            for replacing in (False, True):
                if some := [row.values for row in ordered if row.replaces is replacing]:
                    connection.execute(self._insertion(replacing), some)
            if owner is not None:
                release_all(connection, list(values), owner)
            return True

        if late and not self._guard.asked("writing", lambda: self.database.write(work), False):
            self._put_off(late)

    def settle(self) -> None:
        """Tries once more to write what could not be written; warns if it can not be kept. For the end of a run."""
        if not self._late:
            return
        self._guard.rested()
        self.add("", {})
        if count := len(self._late):
            _logger.warning(
                "%d answers could not be kept in the store of answers %s; a run that needs them again asks again",
                count,
                self.database.name,
            )

    def _insertion(self, replacing: bool) -> "sqlite.Insert | postgresql.Insert":
        insertion = self.database.insert(ANSWERS)
        if not replacing:
            return insertion.on_conflict_do_nothing()
        new = {column.name: insertion.excluded[column.name] for column in ANSWERS.c if not column.primary_key}
        return insertion.on_conflict_do_update(index_elements=["key"], set_=new)

    def _put_off(self, rows: "dict[bytes, _Row]") -> None:
        """Has values wait that could not be written; if they are too many, the first ones."""
        with self.database.lock:
            rows.update(self._late)
            self._late = rows if len(rows) <= MOST_LATE else dict(islice(rows.items(), MOST_LATE))

    def _drop(self, damaged: Sequence[bytes]) -> None:
        if not damaged:
            return
        with self.database.lock:
            first = self.damaged == 0
            self.damaged += len(damaged)
        if first:
            _logger.warning(
                "the store of answers %s holds damaged values; they are removed and computed anew", self.database.name
            )
        self._change(damaged, lambda chunk: delete(ANSWERS).where(ANSWERS.c.key.in_(chunk)))

    def _change(self, keys: Sequence[bytes], statement_for: Callable[[Sequence[bytes]], Delete | Update]) -> None:
        for statement in map(statement_for, chunks(keys)):
            self._execute(statement)

    def _execute(self, statement: Delete | Update) -> None:
        self._guard.asked("writing", lambda: self.database.write(lambda c: c.execute(statement)), None)


def checksum_bytes(key: bytes, value: bytes) -> int:
    """Checksum of a value at its place.

    >>> checksum_bytes(b"key", b"value") == checksum_bytes(b"key", b"valve")
    False
    """
    return zlib.crc32(value, zlib.crc32(key))


def keep_intact(key: bytes, value: bytes, checksum: int) -> bytes:
    """The value, if it is what was kept under the key.

    Raises:
        ValueError: it is not.
    """
    if checksum_bytes(key, value) != checksum:
        raise ValueError("the checksum does not fit")
    return value
