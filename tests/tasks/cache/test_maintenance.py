"""What a store tells about itself, and how it is made smaller."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from tasks.cache.answer_cache import AnswerCache
from tasks.cache.cache_tables import ANSWERS
from tasks.cache.maintenance import CheckResult, PruneResult, check, prune, statistics
from tests.tasks.cache.helpers import key_of


def put(store: AnswerCache, text: str, value: bytes, days: int = 0, step: str = "test") -> None:
    """Keeps a value that was last used some days ago."""
    store.add(step, {key_of(text): value})
    used = int((datetime.now(UTC) - timedelta(days=days)).timestamp())
    statement = update(ANSWERS).where(ANSWERS.c.key == key_of(text)).values(used=used)
    store.database.write(lambda connection: connection.execute(statement))


def held(store: AnswerCache, *texts: str) -> str:
    """Those of the values that are there, without noting that they are used."""
    keys = store.database.read(lambda connection: set(connection.execute(ANSWERS.select()).scalars()))
    return "".join(text for text in texts if key_of(text) in keys)


def test_statistics(store: AnswerCache) -> None:
    assert statistics(store) == []
    put(store, "a", b"12345", days=40, step="choice")
    put(store, "b", b"123", step="choice")
    put(store, "c", b"", step="vector")
    choices, vectors = statistics(store)
    assert (choices.step, choices.count, choices.size) == ("choice", 2, 8)
    assert (vectors.step, vectors.count, vectors.size) == ("vector", 1, 0)
    assert choices.oldest <= choices.newest <= datetime.now(UTC)
    assert datetime.now(UTC) - choices.used < timedelta(hours=1)


def test_a_check_reads_every_value(store: AnswerCache) -> None:
    store.add("test", {key_of(str(number)): b"x" for number in range(2500)})
    assert check(store) == CheckResult(2500, 0, ())
    damage = update(ANSWERS).where(ANSWERS.c.key.in_([key_of("7"), key_of("8")])).values(value=b"y")
    store.database.write(lambda connection: connection.execute(damage))
    assert check(store) == check(store, remove=True) == CheckResult(2500, 2, ())
    assert check(store) == CheckResult(2498, 0, ())


def test_a_check_of_a_damaged_file_says_so(file_store: AnswerCache, path: Path) -> None:
    file_store.add("test", {key_of(str(number)): b"x" * 200 for number in range(2000)})
    file_store.database.read(lambda connection: connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all())
    content = bytearray(path.read_bytes())
    content[4096 * 20 : 4096 * 22] = b"\xff" * 8192
    path.write_bytes(content)
    assert check(AnswerCache(f"sqlite:///{path}")).problems


def test_what_was_not_used_for_long_is_pruned(store: AnswerCache) -> None:
    for text, days in (("a", 100), ("b", 50), ("c", 0)):
        put(store, text, b"1234", days)
    month = datetime.now(UTC) - timedelta(days=30)
    assert prune(store, before=month) == PruneResult(2, 8)
    assert held(store, "a", "b", "c") == "abc"
    assert prune(store, before=month, dry_run=False) == PruneResult(2, 8)
    assert held(store, "a", "b", "c") == "c"
    assert prune(store) == PruneResult(0, 0)


@pytest.mark.parametrize(
    ("size", "kept"), [(100, "abcd"), (10, "abcd"), (9, "acd"), (7, "acd"), (6, "cd"), (3, "cd"), (2, "d"), (0, "")]
)
def test_a_size_keeps_what_was_used_last(store: AnswerCache, size: int, kept: str) -> None:
    for text, value, days in (("b", b"123", 4), ("a", b"1234", 3), ("c", b"1", 2), ("d", b"12", 1)):
        put(store, text, value, days)
    prune(store, size=size, dry_run=False)
    assert held(store, "a", "b", "c", "d") == kept


def test_what_was_used_within_the_hour_stays_whatever_is_asked(store: AnswerCache) -> None:
    store.add("test", {key_of("paid"): b"1234"})
    assert prune(store, before=datetime.now(UTC) + timedelta(days=1), size=0, dry_run=False) == PruneResult(0, 0)
    assert held(store, "paid") == "paid"


def test_pruning_gives_room_back(file_store: AnswerCache, path: Path) -> None:
    file_store.add("test", {key_of(str(number)): b"x" * 1000 for number in range(3000)})
    aged = update(ANSWERS).values(used=ANSWERS.c.used - 7200)
    file_store.database.write(lambda connection: connection.execute(aged))
    assert prune(file_store, size=0, dry_run=False).count == 3000
    assert path.stat().st_size < 200_000
    assert check(file_store) == CheckResult(0, 0, ())
