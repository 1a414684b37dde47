"""Statistics, checks and pruning of a cache."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from tasks.cache.answer_cache import AnswerCache
from tasks.cache.cache_tables import ANSWERS
from tasks.cache.maintenance import CheckResult, PruneResult, check, prune_values, statistics
from tests.tasks.cache.helpers import key_of


def put(cache: AnswerCache, text: str, value: bytes, days: int = 0, step: str = "test") -> None:
    """Add a value that was last used some days ago."""
    cache.add(step, {key_of(text): value})
    used = int((datetime.now(UTC) - timedelta(days=days)).timestamp())
    statement = update(ANSWERS).where(ANSWERS.c.key == key_of(text)).values(used=used)
    cache.database.write(lambda connection: connection.execute(statement))


def find_values(cache: AnswerCache, *texts: str) -> str:
    """Return the cached values of these, without recording a use."""
    keys = cache.database.read(lambda connection: set(connection.execute(ANSWERS.select()).scalars()))
    return "".join(text for text in texts if key_of(text) in keys)


def test_statistics(cache: AnswerCache) -> None:
    assert statistics(cache) == []
    put(cache, "a", b"12345", days=40, step="choice")
    put(cache, "b", b"123", step="choice")
    put(cache, "c", b"", step="vector")
    choices, vectors = statistics(cache)
    assert (choices.step, choices.count, choices.size) == ("choice", 2, 8)
    assert (vectors.step, vectors.count, vectors.size) == ("vector", 1, 0)
    assert choices.oldest <= choices.newest <= datetime.now(UTC)
    assert datetime.now(UTC) - choices.used < timedelta(hours=1)


def test_a_check_reads_every_value(cache: AnswerCache) -> None:
    cache.add("test", {key_of(str(number)): b"x" for number in range(2500)})
    assert check(cache) == CheckResult(2500, 0, ())
    damage = update(ANSWERS).where(ANSWERS.c.key.in_([key_of("7"), key_of("8")])).values(value=b"y")
    cache.database.write(lambda connection: connection.execute(damage))
    assert check(cache) == check(cache, remove=True) == CheckResult(2500, 2, ())
    assert check(cache) == CheckResult(2498, 0, ())


def test_a_check_reports_a_damaged_file(file_cache: AnswerCache, path: Path) -> None:
    file_cache.add("test", {key_of(str(number)): b"x" * 200 for number in range(2000)})
    file_cache.database.read(lambda connection: connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all())
    content = bytearray(path.read_bytes())
    content[4096 * 20 : 4096 * 22] = b"\xff" * 8192
    path.write_bytes(content)
    assert check(AnswerCache(f"sqlite:///{path}")).problems


def test_values_not_used_for_long_are_pruned(cache: AnswerCache) -> None:
    for text, days in (("a", 100), ("b", 50), ("c", 0)):
        put(cache, text, b"1234", days)
    month = datetime.now(UTC) - timedelta(days=30)
    assert prune_values(cache, before=month) == PruneResult(2, 8)
    assert find_values(cache, "a", "b", "c") == "abc"
    assert prune_values(cache, before=month, dry_run=False) == PruneResult(2, 8)
    assert find_values(cache, "a", "b", "c") == "c"
    assert prune_values(cache) == PruneResult(0, 0)


@pytest.mark.parametrize(
    ("size", "kept"), [(100, "abcd"), (10, "abcd"), (9, "acd"), (7, "acd"), (6, "cd"), (3, "cd"), (2, "d"), (0, "")]
)
def test_a_size_keeps_the_last_used_values(cache: AnswerCache, size: int, kept: str) -> None:
    for text, value, days in (("b", b"123", 4), ("a", b"1234", 3), ("c", b"1", 2), ("d", b"12", 1)):
        put(cache, text, value, days)
    prune_values(cache, size=size, dry_run=False)
    assert find_values(cache, "a", "b", "c", "d") == kept


def test_values_used_within_the_hour_always_stay(cache: AnswerCache) -> None:
    cache.add("test", {key_of("paid"): b"1234"})
    assert prune_values(cache, before=datetime.now(UTC) + timedelta(days=1), size=0, dry_run=False) == PruneResult(0, 0)
    assert find_values(cache, "paid") == "paid"


def test_pruning_shrinks_the_file(file_cache: AnswerCache, path: Path) -> None:
    file_cache.add("test", {key_of(str(number)): b"x" * 1000 for number in range(3000)})
    aged = update(ANSWERS).values(used=ANSWERS.c.used - 7200)
    file_cache.database.write(lambda connection: connection.execute(aged))
    assert prune_values(file_cache, size=0, dry_run=False).count == 3000
    assert path.stat().st_size < 200_000
    assert check(file_cache) == CheckResult(0, 0, ())
