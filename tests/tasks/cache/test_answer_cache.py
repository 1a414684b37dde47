"""Values are found as they were added, in bulk, and never by half."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, update

from tasks.cache.answer_cache import AnswerCache
from tasks.cache.cache_tables import ANSWERS
from tests.tasks.cache.helpers import key_of


def test_values_are_found_under_their_keys(store: AnswerCache) -> None:
    store.add("test", {key_of("a"): b"one", key_of("b"): b""})
    assert store.find([key_of("b"), key_of("c"), key_of("a")], bytes) == {key_of("a"): b"one", key_of("b"): b""}


def test_thousands_at_once(store: AnswerCache) -> None:
    values = {key_of(str(number)): str(number).encode() for number in range(2345)}
    store.add("test", values)
    absent = [key_of(f"absent {number}") for number in range(2345)]
    assert store.find([*values, *absent], bytes) == values


def test_no_keys_find_nothing_and_no_values_add_nothing(store: AnswerCache) -> None:
    store.add("test", {})
    assert store.find([], bytes) == {}


def test_a_value_that_is_there_stays_unless_it_is_replaced(store: AnswerCache) -> None:
    key = key_of("a")
    store.add("test", {key: b"first"})
    store.add("test", {key: b"second", key_of("b"): b"new"})
    assert store.find([key], bytes) == {key: b"first"}
    store.add("test", {key: b"third"}, replace=True)
    assert store.find([key, key_of("b")], bytes) == {key: b"third", key_of("b"): b"new"}


@pytest.mark.parametrize("column", ["value", "checksum", "key"])
def test_a_damaged_value_is_removed_and_can_be_added_anew(
    store: AnswerCache, column: str, caplog: pytest.LogCaptureFixture
) -> None:
    key = key_of("a")
    store.add("test", {key: b"right", key_of("b"): b"right"})
    damage = {"value": b"wrong", "checksum": 1, "key": key_of("another")}[column]
    where = update(ANSWERS).where(ANSWERS.c.key == key).values({column: damage})
    store.database.write(lambda connection: connection.execute(where))
    wanted = key_of("another") if column == "key" else key
    assert store.find([wanted, key_of("b")], bytes) == {key_of("b"): b"right"}
    assert store.damaged == 1
    store.add("test", {wanted: b"again"})
    assert store.find([wanted], bytes) == {wanted: b"again"}
    assert len(caplog.messages) == 1


@pytest.mark.parametrize("error", [ValueError, KeyError, TypeError])
def test_a_value_that_can_not_be_decoded_is_damaged(store: AnswerCache, error: type[Exception]) -> None:
    def decode(_content: bytes) -> None:
        raise error

    store.add("test", {key_of("a"): b"x"})
    assert store.find([key_of("a")], decode) == {}
    assert store.find([key_of("a")], bytes) == {}


def test_use_is_noted_once_a_day(store: AnswerCache) -> None:
    key = key_of("a")
    store.add("test", {key: b"x"})

    def used() -> int:
        return int(store.database.read(lambda connection: connection.execute(select(ANSWERS.c.used)).scalar_one()))

    recent = used() - 3600
    for before, noted in ((recent, False), (recent - 86_400, True)):
        statement = update(ANSWERS).values(used=before)
        store.database.write(lambda connection, statement=statement: connection.execute(statement))  # type: ignore[misc]
        store.find([key], bytes)
        assert (used() != before) is noted


def test_many_threads_lose_nothing(store: AnswerCache) -> None:
    def work(number: int) -> None:
        values = {key_of(str(k)): str(k).encode() for k in range(number, number + 40)}
        store.add("test", values)
        assert store.find(list(values), bytes) == values

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(0, 400, 10)))
    assert len(store.find([key_of(str(k)) for k in range(430)], bytes)) == 430


@given(st.dictionaries(st.binary(min_size=32, max_size=32), st.binary(max_size=3000), max_size=20))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_any_bytes_come_back(file_store: AnswerCache, values: dict[bytes, bytes]) -> None:
    file_store.add("test", values, replace=True)
    assert file_store.find(list(values), bytes) == values


def test_a_folder_is_made_when_it_is_needed(tmp_path: Path) -> None:
    store = AnswerCache(f"sqlite:///{tmp_path}/new/folder/answers.db")
    assert not (tmp_path / "new").exists()
    store.add("test", {key_of("a"): b"x"})
    assert store.find([key_of("a")], bytes) == {key_of("a"): b"x"}
