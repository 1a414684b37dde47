"""Who claims an answer computes it; nobody waits for the dead for long."""

import pytest
from sqlalchemy import update

from tasks.cache import leases
from tasks.cache.answer_cache import AnswerCache
from tasks.cache.cache_tables import LEASES
from tests.tasks.cache.helpers import key_of, wait_until

KEYS = [key_of(str(number)) for number in range(1200)]


def test_a_key_has_one_owner(store: AnswerCache) -> None:
    assert store.leases.claim(KEYS[:700], "one") == set(KEYS[:700])
    assert store.leases.claim(KEYS, "two") == set(KEYS[700:])
    assert store.leases.claimed(KEYS) == set(KEYS)


def test_an_owner_may_claim_again(store: AnswerCache) -> None:
    assert store.leases.claim(KEYS[:2], "one") == set(KEYS[:2])
    assert store.leases.claim(KEYS[:3], "one") == set(KEYS[:3])


def test_keeping_the_answer_ends_the_claim(store: AnswerCache) -> None:
    store.leases.claim(KEYS[:3], "one")
    store.add("test", {KEYS[0]: b"x"}, "one")
    assert store.leases.claimed(KEYS[:3]) == {KEYS[1], KEYS[2]}


def test_the_claim_of_another_stays_when_an_answer_is_kept(store: AnswerCache) -> None:
    store.leases.claim(KEYS[:1], "one")
    store.add("test", {KEYS[0]: b"x"}, "two")
    assert store.leases.claimed(KEYS[:1]) == {KEYS[0]}


def test_letting_go_ends_the_claims_of_one_owner(store: AnswerCache) -> None:
    store.leases.claim(KEYS[:2], "one")
    store.leases.claim(KEYS[2:4], "two")
    store.leases.release("one")
    assert store.leases.claimed(KEYS[:4]) == {KEYS[2], KEYS[3]}


def test_a_claim_ends_without_a_sign_of_life(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LEASE_SECONDS", 0.3)
    store = AnswerCache(url)
    store.leases.claim(KEYS[:1], "dead")
    wait_until(lambda: store.leases.claimed(KEYS[:1]) == set())
    assert store.leases.claim(KEYS[:1], "two") == {KEYS[0]}


def test_a_sign_of_life_prolongs_claims(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LEASE_SECONDS", 0.3)
    short = AnswerCache(url)
    monkeypatch.setattr(leases, "LEASE_SECONDS", 3600.0)
    store = AnswerCache(url)
    short.leases.claim(KEYS[:2], "alive")
    short.leases.claim(KEYS[2:3], "dead")
    store.leases.extend("alive")
    wait_until(lambda: KEYS[2] not in store.leases.claimed(KEYS[:3]))
    assert store.leases.claimed(KEYS[:3]) == {KEYS[0], KEYS[1]}


def test_claims_of_the_dead_are_swept_away(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LEASE_SECONDS", -1.0)
    store = AnswerCache(url)
    store.leases.claim(KEYS[:3], "dead")
    store.leases.release("somebody else")
    count = "SELECT count(*) FROM assay_leases"
    assert store.database.read(lambda connection: connection.exec_driver_sql(count).scalar()) == 0


def test_a_claim_from_before_the_clock_was_put_back_holds_nobody_up(store: AnswerCache) -> None:
    store.leases.claim(KEYS[:2], "dead")
    an_hour_later = update(LEASES).values(expires=LEASES.c.expires + 3600)
    store.database.write(lambda connection: connection.execute(an_hour_later))
    assert store.leases.claimed(KEYS[:2]) == set()
    assert store.leases.claim(KEYS[:1], "two") == {KEYS[0]}
    assert store.leases.claimed(KEYS[:2]) == {KEYS[0]}
