"""Inspect, check and prune an answer cache."""

import math
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, delete, func, select
from sqlalchemy.exc import SQLAlchemyError

from metric_core.errors import ConfigError
from tasks.cache.answer_cache import AnswerCache, checksum_bytes
from tasks.cache.cache_tables import ANSWERS
from tasks.runtime.database import chunks
from tasks.runtime.database_errors import error_reason, is_damage

YOUNGEST_SECONDS = 3600
"""Values used within this time are never pruned: a run in progress may need them again."""

_PAGE = 1000
"""Rows per transaction, so that other processes can write in between."""


@dataclass(frozen=True, slots=True)
class StepStatistics:
    """The cached values of one kind.

    Args:
        step: Kind of the values: `choice`, `generate`, `vector` or `entities`.
        count: Number of values.
        size: Size of the values in bytes, without the overhead of the database.
        oldest: Time when the first value was cached.
        newest: Time when the last value was cached.
        used: Time of the last use, accurate to a day.
    """

    step: str
    count: int
    size: int
    oldest: datetime
    newest: datetime
    used: datetime


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The findings of a check of a cache.

    Args:
        count: Number of values read.
        damaged: Number of values whose checksum did not match.
        problems: Problems that the database reports; empty if there are none.
    """

    count: int
    damaged: int
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PruneResult:
    """The number of values that pruning removes, or would remove, and their size in bytes."""

    count: int
    size: int


def statistics(cache: AnswerCache) -> list[StepStatistics]:
    """Return the statistics of each kind of value in a cache.

    Raises:
        AssayError: The cache cannot be used.
    """
    with _translate_errors(cache):
        return _statistics(cache)


def _statistics(cache: AnswerCache) -> list[StepStatistics]:
    cache.ensure()
    columns = (
        *(ANSWERS.c.step, func.count(), func.sum(func.length(ANSWERS.c.value))),
        *(func.min(ANSWERS.c.created), func.max(ANSWERS.c.created), func.max(ANSWERS.c.used)),
    )
    query = select(*columns).group_by(ANSWERS.c.step).order_by(ANSWERS.c.step)
    rows = cache.database.maintain(lambda connection: connection.execute(query).all())
    return [
        StepStatistics(step, count, int(size), *(datetime.fromtimestamp(second, UTC) for second in seconds))
        for step, count, size, *seconds in rows
    ]


def check(cache: AnswerCache, *, remove: bool = False) -> CheckResult:
    """Read and verify every value, and run the integrity check of a SQLite file.

    Args:
        remove: If true, remove damaged values; they are recomputed when they are needed.

    Raises:
        AssayError: The cache cannot be used.
    """
    count, damaged, problems = 0, list[bytes](), list[str]()
    try:
        cache.ensure()
        if cache.database.is_sqlite:
            findings = cache.database.maintain(lambda c: c.exec_driver_sql("PRAGMA integrity_check").scalars().all())
            problems += [finding for finding in findings if finding != "ok"]
        for page in _pages(cache):
            count += len(page)
            damaged += [key for key, value, checksum in page if not _is_intact(key, value, checksum)]
        if remove:
            _remove(cache, damaged)
    except ConfigError as error:
        if not (isinstance(error.__cause__, Exception) and is_damage(error.__cause__)):
            raise  # the cache may be intact, and cannot be reached
        problems.append(error_reason(error.__cause__))
    except (SQLAlchemyError, sqlite3.Error) as error:
        problems.append(error_reason(error))
    return CheckResult(count, len(damaged), tuple(problems))


def prune_values(
    cache: AnswerCache, *, before: datetime | None = None, size: int | None = None, dry_run: bool = True
) -> PruneResult:
    """Remove the least recently used values; runs in progress may continue.

    Args:
        before: Remove values last used before this time; values used within the last hour always stay.
        size: Size in bytes that the remaining values must not exceed.
        dry_run: If true, only count what would be removed.

    Raises:
        AssayError: The cache cannot be used.
    """
    with _translate_errors(cache):
        return _prune(cache, before, size, dry_run)


def _prune(cache: AnswerCache, before: datetime | None, size: int | None, dry_run: bool) -> PruneResult:
    cache.ensure()
    cutoff = -math.inf if before is None else before.timestamp()
    if size is not None:
        cutoff = max(cutoff, _cutoff(cache, size))
    cutoff = min(cutoff, time.time() - YOUNGEST_SECONDS)
    is_old = ANSWERS.c.used < cutoff
    measure = select(func.count(), func.sum(func.length(ANSWERS.c.value))).where(is_old)
    count, removed = cache.database.maintain(lambda connection: connection.execute(measure).one())
    if not dry_run:
        page = select(ANSWERS.c.key).where(is_old).limit(_PAGE)
        while keys := cache.database.maintain(lambda connection: connection.execute(page).scalars().all()):
            _remove(cache, keys)
        if cache.database.is_sqlite:
            cache.database.maintain(_shrink)
    return PruneResult(count, int(removed or 0))


@contextmanager
def _translate_errors(cache: AnswerCache) -> Iterator[None]:
    """Translate the errors of a database that is damaged, or that another program has changed.

    Raises:
        ConfigError: The database cannot be read.
    """
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, TypeError, ValueError, OverflowError) as error:
        advice = " The file is damaged: delete it or restore a copy." if is_damage(error) else ""
        raise ConfigError(
            f"the answer cache {cache.database.name} cannot be read: {error_reason(error)}.{advice} "
            "`assay store --check` lists the damage."
        ) from error


def _is_intact(key: Any, value: Any, checksum: Any) -> bool:
    try:
        return bool(checksum_bytes(key, value) == checksum)
    except TypeError:  # SQLite stores values of any type in a column of bytes
        return False


def _cutoff(cache: AnswerCache, size: int) -> float:
    """Return the earliest time of last use such that the values used since then fit into a size."""
    query = select(ANSWERS.c.used, func.sum(func.length(ANSWERS.c.value))).group_by(ANSWERS.c.used)
    sizes = sorted(cache.database.maintain(lambda connection: connection.execute(query).all()), reverse=True)
    cutoff, total = math.inf, 0
    for used, used_size in sizes:
        total += int(used_size)
        if total > size:
            return cutoff
        cutoff = used
    return cutoff


def _pages(cache: AnswerCache) -> Iterator[Sequence[tuple[bytes, bytes, int]]]:
    """Yield key, value and checksum of all rows, in the order of the keys; each page is a separate transaction."""
    page: Sequence[tuple[bytes, bytes, int]] = [(b"", b"", 0)]
    while page := _page(cache, page[-1][0]):
        yield page


def _page(cache: AnswerCache, after: bytes) -> list[tuple[bytes, bytes, int]]:
    query = select(ANSWERS.c.key, ANSWERS.c.value, ANSWERS.c.checksum).where(ANSWERS.c.key > after)
    ordered = query.order_by(ANSWERS.c.key).limit(_PAGE)
    return cache.database.maintain(lambda connection: [tuple(row) for row in connection.execute(ordered)])


def _remove(cache: AnswerCache, keys: Sequence[bytes]) -> None:
    def work(connection: Connection) -> None:
        for chunk in chunks(keys):
            connection.execute(delete(ANSWERS).where(ANSWERS.c.key.in_(chunk)))

    cache.database.write(work)


def _shrink(connection: Connection) -> None:
    """Return freed pages to the file system."""
    # Each step of the statement frees one page, and only executescript runs all steps in every version of Python.
    file: Any = connection.connection.dbapi_connection
    file.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE);")
