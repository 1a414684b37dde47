"""Values are found as they were added, in bulk, and never incomplete."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, update

from tasks.cache.answer_cache import AnswerCache
from tasks.cache.cache_tables import ANSWERS
from tests.tasks.cache.helpers import key_of


def test_values_are_found_under_their_keys(cache: AnswerCache) -> None:
    cache.add("test", {key_of("a"): b"one", key_of("b"): b""})
    assert cache.find([key_of("b"), key_of("c"), key_of("a")], bytes) == {key_of("a"): b"one", key_of("b"): b""}


def test_thousands_at_once(cache: AnswerCache) -> None:
    values = {key_of(str(number)): str(number).encode() for number in range(2345)}
    cache.add("test", values)
    absent = [key_of(f"absent {number}") for number in range(2345)]
    assert cache.find([*values, *absent], bytes) == values


def test_no_keys_find_nothing_and_no_values_add_nothing(cache: AnswerCache) -> None:
    cache.add("test", {})
    assert cache.find([], bytes) == {}


def test_a_value_that_is_there_stays_unless_it_is_replaced(cache: AnswerCache) -> None:
    key = key_of("a")
    cache.add("test", {key: b"first"})
    cache.add("test", {key: b"second", key_of("b"): b"new"})
    assert cache.find([key], bytes) == {key: b"first"}
    cache.add("test", {key: b"third"}, replace=True)
    assert cache.find([key, key_of("b")], bytes) == {key: b"third", key_of("b"): b"new"}


@pytest.mark.parametrize("column", ["value", "checksum", "key"])
def test_a_damaged_value_is_removed_and_can_be_added_again(
    cache: AnswerCache, column: str, caplog: pytest.LogCaptureFixture
) -> None:
    key = key_of("a")
    cache.add("test", {key: b"right", key_of("b"): b"right"})
    damage = {"value": b"wrong", "checksum": 1, "key": key_of("another")}[column]
    where = update(ANSWERS).where(ANSWERS.c.key == key).values({column: damage})
    cache.database.write(lambda connection: connection.execute(where))
    wanted = key_of("another") if column == "key" else key
    assert cache.find([wanted, key_of("b")], bytes) == {key_of("b"): b"right"}
    assert cache.damaged == 1
    cache.add("test", {wanted: b"again"})
    assert cache.find([wanted], bytes) == {wanted: b"again"}
    assert len(caplog.messages) == 1


@pytest.mark.parametrize("error", [ValueError, KeyError, TypeError])
def test_a_value_that_cannot_be_decoded_is_damaged(cache: AnswerCache, error: type[Exception]) -> None:
    def decode(_content: bytes) -> None:
        raise error

    cache.add("test", {key_of("a"): b"x"})
    assert cache.find([key_of("a")], decode) == {}
    assert cache.find([key_of("a")], bytes) == {}


def test_use_is_noted_once_a_day(cache: AnswerCache) -> None:
    key = key_of("a")
    cache.add("test", {key: b"x"})

    def used() -> int:
        return int(cache.database.read(lambda connection: connection.execute(select(ANSWERS.c.used)).scalar_one()))

    recent = used() - 3600
    for before, noted in ((recent, False), (recent - 86_400, True)):
        statement = update(ANSWERS).values(used=before)
        cache.database.write(lambda connection, statement=statement: connection.execute(statement))  # type: ignore[misc]
        cache.find([key], bytes)
        assert (used() != before) is noted


def test_many_threads_lose_nothing(cache: AnswerCache) -> None:
    def work(number: int) -> None:
        values = {key_of(str(k)): str(k).encode() for k in range(number, number + 40)}
        cache.add("test", values)
        assert cache.find(list(values), bytes) == values

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(0, 400, 10)))
    assert len(cache.find([key_of(str(k)) for k in range(430)], bytes)) == 430


@given(st.dictionaries(st.binary(min_size=32, max_size=32), st.binary(max_size=3000), max_size=20))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_any_bytes_come_back(file_cache: AnswerCache, values: dict[bytes, bytes]) -> None:
    file_cache.add("test", values, replace=True)
    assert file_cache.find(list(values), bytes) == values


def test_a_folder_is_made_when_it_is_needed(tmp_path: Path) -> None:
    cache = AnswerCache(f"sqlite:///{tmp_path}/new/folder/answers.db")
    assert not (tmp_path / "new").exists()
    cache.add("test", {key_of("a"): b"x"})
    assert cache.find([key_of("a")], bytes) == {key_of("a"): b"x"}
