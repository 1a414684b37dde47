"""Looking after a store of answers: what is in it, whether it is whole, and making it smaller."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, delete, func, select
from sqlalchemy.exc import SQLAlchemyError

from tasks.cache.answer_cache import AnswerCache, checksum_bytes
from tasks.cache.cache_tables import ANSWERS
from tasks.cache.circuit_breaker import error_reason
from tasks.cache.database import chunks

YOUNGEST_SECONDS = 3600
"""What was used within this time stays whatever is asked for: a run that is under way may need it again."""

_PAGE = 1000
"""Rows a transaction: others want to write too."""


@dataclass(frozen=True, slots=True)
class StepStatistics:
    """What a store holds of one kind.

    Args:
        step: the kind: `choice`, `generate`, `vector`, `entities`.
        count: how many values.
        size: their bytes, without what the database adds.
        oldest: when the first one was kept.
        newest: when the last one was kept.
        used: when one was last used, give or take a day.
    """

    step: str
    count: int
    size: int
    oldest: datetime
    newest: datetime
    used: datetime


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check of a store found.

    Args:
        count: values read.
        damaged: values whose checksum did not fit.
        problems: what the database says about itself; empty if all is well.
    """

    count: int
    damaged: int
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PruneResult:
    """What pruning removes, or would remove: how many values, and their bytes."""

    count: int
    size: int


def statistics(store: AnswerCache) -> list[StepStatistics]:
    """What a store holds, kind by kind.

    Raises:
        AssayError: the store can not be used.
    """
    store.ensure()
    columns = (
        *(ANSWERS.c.step, func.count(), func.sum(func.length(ANSWERS.c.value))),
        *(func.min(ANSWERS.c.created), func.max(ANSWERS.c.created), func.max(ANSWERS.c.used)),
    )
    query = select(*columns).group_by(ANSWERS.c.step).order_by(ANSWERS.c.step)
    rows = store.database.read(lambda connection: connection.execute(query).all())
    return [
        StepStatistics(step, count, int(size), *(datetime.fromtimestamp(second, UTC) for second in seconds))
        for step, count, size, *seconds in rows
    ]


def check(store: AnswerCache, *, remove: bool = False) -> CheckResult:
    """Reads every value, and has a SQLite file look at itself.

    Args:
        store: the store.
        remove: remove damaged values; they are computed anew when they are needed.

    Raises:
        AssayError: the store can not be used.
    """
    store.ensure()
    count, damaged, problems = 0, list[bytes](), list[str]()
    try:
        if store.database.is_sqlite:
            said = store.database.read(lambda c: c.exec_driver_sql("PRAGMA integrity_check").scalars().all())
            problems += [words for words in said if words != "ok"]
        for page in _pages(store):
            count += len(page)
            damaged += [key for key, value, checksum in page if checksum_bytes(key, value) != checksum]
        if remove:
            _remove(store, damaged)
    except SQLAlchemyError as error:
        problems.append(error_reason(error))
    return CheckResult(count, len(damaged), tuple(problems))


def prune(
    store: AnswerCache, *, before: datetime | None = None, size: int | None = None, dry_run: bool = True
) -> PruneResult:
    """Removes what has not been used for longest; runs that are under way may go on.

    Args:
        store: the store.
        before: remove what was last used before this time; what was used within the hour stays in any case.
        size: remove until the values take no more than these bytes.
        dry_run: only tell what would be removed.

    Raises:
        AssayError: the store can not be used.
    """
    store.ensure()
    cutoff = -math.inf if before is None else before.timestamp()
    if size is not None:
        cutoff = max(cutoff, _cutoff(store, size))
    cutoff = min(cutoff, time.time() - YOUNGEST_SECONDS)
    is_old = ANSWERS.c.used < cutoff
    measure = select(func.count(), func.sum(func.length(ANSWERS.c.value))).where(is_old)
    count, removed = store.database.read(lambda connection: connection.execute(measure).one())
    if not dry_run:
        some = select(ANSWERS.c.key).where(is_old).limit(_PAGE)
        while keys := store.database.read(lambda connection: connection.execute(some).scalars().all()):
            _remove(store, keys)
        if store.database.is_sqlite:
            store.database.read(_shrink)
    return PruneResult(count, int(removed or 0))


def _cutoff(store: AnswerCache, size: int) -> float:
    """The time of last use from which on values fit into a size."""
    query = select(ANSWERS.c.used, func.sum(func.length(ANSWERS.c.value))).group_by(ANSWERS.c.used)
    taken = sorted(store.database.read(lambda connection: connection.execute(query).all()), reverse=True)
    cutoff, total = math.inf, 0
    for used, part in taken:
        total += int(part)
        if total > size:
            return cutoff
        cutoff = used
    return cutoff


def _pages(store: AnswerCache) -> Iterator[Sequence[tuple[bytes, bytes, int]]]:
    """Key, value and checksum of all rows, in the order of the keys; each page is a transaction of its own."""
    page: Sequence[tuple[bytes, bytes, int]] = [(b"", b"", 0)]
    while page := _page(store, page[-1][0]):
        yield page


def _page(store: AnswerCache, after: bytes) -> list[tuple[bytes, bytes, int]]:
    query = select(ANSWERS.c.key, ANSWERS.c.value, ANSWERS.c.checksum).where(ANSWERS.c.key > after)
    ordered = query.order_by(ANSWERS.c.key).limit(_PAGE)
    return store.database.read(lambda connection: [tuple(row) for row in connection.execute(ordered)])


def _remove(store: AnswerCache, keys: Sequence[bytes]) -> None:
    def work(connection: Connection) -> None:
        for chunk in chunks(keys):
            connection.execute(delete(ANSWERS).where(ANSWERS.c.key.in_(chunk)))

    store.database.write(work)


def _shrink(connection: Connection) -> None:
    """Gives the pages that became free back to the file system."""
    # A page is freed at each step of the statement, and only a script makes all of them in every version of Python.
    file: Any = connection.connection.dbapi_connection
    file.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE);")
