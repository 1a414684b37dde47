"""Measure the speed of the cache while small and while large, on SQLite and on PostgreSQL.

    python -m benchmarks.store --sizes 1000 100000 5000000

Keys are looked up in batches as large as a stage's, and added in batches as large as a judge's. The caches are filled
by bulk inserts. PostgreSQL is the server of the tests, which does not wait for the disk; the SQLite file is in a
temporary folder and takes about 1.6 GB at five million answers.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from tasks.cache.answer_cache import AnswerCache, checksum_bytes
from tasks.cache.codec import CHOICES
from tasks.runtime.database_address import engine_url
from tests.postgres import new_database, running_postgres

VALUE = (
    b'{"votes":["yes"],"probabilities":{"yes":0.9820137900379085,"no":0.01798620996209156},"reply":"yes",'
    b'"usage":[1,812,768,1,0.0412]}'
)
COLUMNS = ("key", "step", "checksum", "created", "used", "value")
LOOKED_UP = 4096
ADDED = 256
SECONDS = 5.0


def key_of(number: int) -> bytes:
    return sha256(b"%d" % number).digest()


def rows(first: int, last: int) -> Iterator[tuple[Any, ...]]:
    now = int(time.time())
    for number in range(first, last):
        key = key_of(number)
        yield key, "choice", checksum_bytes(key, VALUE), now, now, VALUE


def fill(store: AnswerCache, first: int, last: int) -> None:
    """Add rows in bulk."""
    names = ", ".join(COLUMNS)

    def load(connection: Connection) -> None:
        raw: Any = connection.connection.dbapi_connection
        source = rows(first, last)
        if store.database.is_sqlite:
            while batch := sorted(islice(source, 100_000)):
                raw.executemany(f"INSERT INTO assay_answers ({names}) VALUES (?, ?, ?, ?, ?, ?)", batch)
            return
        with raw.cursor().copy(f"COPY assay_answers ({names}) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(["bytea", "varchar", "int8", "int8", "int8", "bytea"])
            for row in source:
                copy.write_row(row)

    store.database.write(load)
    if not store.database.is_sqlite:
        store.database.read(lambda connection: connection.exec_driver_sql("ANALYZE assay_answers"))


def rate(work: Callable[[int], int]) -> float:
    """Return units per second of work, which is repeated with the numbers from 0 on."""
    started, done, number = time.perf_counter(), 0, 0
    while time.perf_counter() - started < SECONDS:
        done += work(number)
        number += 1
    return done / (time.perf_counter() - started)


def measure(store: AnswerCache, size: int) -> tuple[float, float, float, float]:
    """Return hits, misses, claims and additions per second for a cache of the given size."""
    step = max(1, size // LOOKED_UP)

    def find(number: int) -> int:
        keys = [key_of((place * step + number * 7919) % size) for place in range(min(LOOKED_UP, size))]
        assert len(store.find(keys, CHOICES.decode)) == len(set(keys))
        return len(keys)

    def miss(number: int) -> int:
        keys = [key_of(-1 - place - number * LOOKED_UP) for place in range(LOOKED_UP)]
        assert not store.find(keys, CHOICES.decode)
        return len(keys)

    def claim(number: int) -> int:
        keys = [key_of(-1 - place - number * LOOKED_UP) for place in range(LOOKED_UP)]
        assert len(store.leases.claim(keys, f"owner {number}")) == LOOKED_UP
        store.leases.release(f"owner {number}")
        return len(keys)

    def add(number: int) -> int:
        keys = [key_of((size + 1) * 10**9 + place + number * ADDED) for place in range(ADDED)]
        store.add("choice", dict.fromkeys(keys, VALUE), "owner")
        return ADDED

    return rate(find), rate(miss), rate(claim), rate(add)


@contextmanager
def open_cache_at(database: str) -> Iterator[AnswerCache]:
    """Yield an empty cache."""
    if database == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield AnswerCache(engine_url(str(Path(folder, "answers.db"))))
    else:
        with running_postgres() as server:
            yield AnswerCache(engine_url(new_database(server)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 100_000, 5_000_000], help="stored answers")
    parser.add_argument("--databases", nargs="+", choices=["sqlite", "postgresql"], default=["sqlite", "postgresql"])
    options = parser.parse_args()
    print("| database | answers | filled/s | found/s | missed/s | claimed/s | added/s | found/s, to smallest |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for database in options.databases:
        with open_cache_at(database) as store:
            store.ensure()
            held, smallest = 0, 0.0
            for size in sorted(options.sizes):
                started = time.perf_counter()
                fill(store, held, size)
                filled = (size - held) / (time.perf_counter() - started)
                held = size
                found, missed, claimed, added = measure(store, size)
                smallest = smallest or found
                rates = " | ".join(f"{value:,.0f}" for value in (filled, found, missed, claimed, added))
                print(f"| {database} | {size:,} | {rates} | {found / smallest:.2f} |", flush=True)


if __name__ == "__main__":
    main()
