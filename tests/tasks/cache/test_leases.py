"""The owner of a lease computes the answer; leases of dead owners end soon."""

import pytest
from sqlalchemy import update

from tasks.cache import leases
from tasks.cache.answer_cache import AnswerCache
from tasks.cache.cache_tables import LEASES
from tests.tasks.cache.helpers import key_of
from tests.waiting import wait_until

KEYS = [key_of(str(number)) for number in range(1200)]


def test_a_key_has_one_owner(cache: AnswerCache) -> None:
    assert cache.leases.claim(KEYS[:700], "one") == set(KEYS[:700])
    assert cache.leases.claim(KEYS, "two") == set(KEYS[700:])
    assert cache.leases.find_claimed(KEYS) == set(KEYS)


def test_an_owner_may_claim_again(cache: AnswerCache) -> None:
    assert cache.leases.claim(KEYS[:2], "one") == set(KEYS[:2])
    assert cache.leases.claim(KEYS[:3], "one") == set(KEYS[:3])


def test_caching_the_answer_ends_the_lease(cache: AnswerCache) -> None:
    cache.leases.claim(KEYS[:3], "one")
    cache.add("test", {KEYS[0]: b"x"}, "one")
    assert cache.leases.find_claimed(KEYS[:3]) == {KEYS[1], KEYS[2]}


def test_the_lease_of_another_owner_stays_when_an_answer_is_cached(cache: AnswerCache) -> None:
    cache.leases.claim(KEYS[:1], "one")
    cache.add("test", {KEYS[0]: b"x"}, "two")
    assert cache.leases.find_claimed(KEYS[:1]) == {KEYS[0]}


def test_release_ends_the_leases_of_one_owner(cache: AnswerCache) -> None:
    cache.leases.claim(KEYS[:2], "one")
    cache.leases.claim(KEYS[2:4], "two")
    cache.leases.release("one")
    assert cache.leases.find_claimed(KEYS[:4]) == {KEYS[2], KEYS[3]}


def test_a_lease_ends_without_a_heartbeat(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LEASE_SECONDS", 0.3)
    cache = AnswerCache(url)
    cache.leases.claim(KEYS[:1], "dead")
    wait_until(lambda: cache.leases.find_claimed(KEYS[:1]) == set())
    assert cache.leases.claim(KEYS[:1], "two") == {KEYS[0]}


def test_a_heartbeat_extends_leases(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LEASE_SECONDS", 0.3)
    short = AnswerCache(url)
    monkeypatch.setattr(leases, "LEASE_SECONDS", 3600.0)
    cache = AnswerCache(url)
    short.leases.claim(KEYS[:2], "alive")
    short.leases.claim(KEYS[2:3], "dead")
    cache.leases.extend(["alive"])
    wait_until(lambda: KEYS[2] not in cache.leases.find_claimed(KEYS[:3]))
    assert cache.leases.find_claimed(KEYS[:3]) == {KEYS[0], KEYS[1]}


def test_leases_of_dead_owners_are_deleted(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LEASE_SECONDS", -1.0)
    cache = AnswerCache(url)
    cache.leases.claim(KEYS[:3], "dead")
    cache.leases.release("another owner")
    count = "SELECT count(*) FROM assay_leases"
    assert cache.database.read(lambda connection: connection.exec_driver_sql(count).scalar()) == 0


def test_a_lease_from_before_the_clock_was_set_back_has_ended(cache: AnswerCache) -> None:
    cache.leases.claim(KEYS[:2], "dead")
    an_hour_later = update(LEASES).values(expires=LEASES.c.expires + 3600)
    cache.database.write(lambda connection: connection.execute(an_hour_later))
    assert cache.leases.find_claimed(KEYS[:2]) == set()
    assert cache.leases.claim(KEYS[:1], "two") == {KEYS[0]}
    assert cache.leases.find_claimed(KEYS[:2]) == {KEYS[0]}
