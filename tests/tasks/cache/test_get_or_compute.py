"""Cached values are found; a missing value is computed once, by one of the runs that need it."""

import time
from asyncio import CancelledError
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from threading import Event, Thread

import pytest

from tasks.cache import leases, write_queue
from tasks.cache.answer_cache import AnswerCache
from tasks.cache.codec import Codec
from tasks.cache.get_or_compute import CachedComputation, OnValue
from tasks.runtime.cancellation import Cancellation, cancellable
from tests.tasks.cache.helpers import key_of
from tests.waiting import DEAD_SECONDS

TEXTS: Codec[str] = Codec("test", 1, lambda text: None if text == "void" else text.encode(), bytes.decode)


class Writer:
    """A computation of the text of each position that records the positions."""

    def __init__(self, texts: Sequence[str], telling: bool = True, then: Callable[[], None] = lambda: None) -> None:
        self._texts = texts
        self._telling = telling
        self._then = then
        self.asked: list[str] = []

    def __call__(self, positions: Sequence[int], on_value: OnValue[str]) -> list[str]:
        values = [self._texts[position] for position in positions]
        self.asked += values
        for place, value in enumerate(values) if self._telling else ():
            on_value(place, value)
        self._then()
        return values


def get_or_compute(cache: AnswerCache, writer: Writer, texts: Sequence[str], refresh: bool = False) -> list[str]:
    return CachedComputation(cache, TEXTS, writer, refresh).values([key_of(text) for text in texts])


@pytest.mark.parametrize("telling", [True, False])
def test_each_key_is_computed_once_and_found_after(cache: AnswerCache, telling: bool) -> None:
    texts = ["b", "a", "b", "c"]
    writer = Writer(texts, telling)
    assert get_or_compute(cache, writer, texts) == texts
    assert writer.asked == ["b", "a", "c"]
    later = Writer(["c", "d"])
    assert get_or_compute(cache, later, ["c", "d"]) == ["c", "d"]
    assert later.asked == ["d"]


def test_every_position_is_reported_once(cache: AnswerCache) -> None:
    get_or_compute(cache, Writer(["a"]), ["a"])
    texts = ["a", "b", "a", "b", "c"]
    told: list[tuple[int, str]] = []
    CachedComputation(cache, TEXTS, Writer(texts)).values(
        [key_of(text) for text in texts], lambda *what: told.append(what)
    )
    assert sorted(told) == list(enumerate(texts))


def test_a_value_without_bytes_is_computed_again(cache: AnswerCache) -> None:
    for _ in range(2):
        writer = Writer(["void", "a"])
        assert get_or_compute(cache, writer, ["void", "a"]) == ["void", "a"]
        assert "void" in writer.asked
    assert cache.leases.find_claimed([key_of("void")]) == set()


def test_a_value_that_cannot_be_encoded_is_logged_and_not_cached(
    cache: AnswerCache, caplog: pytest.LogCaptureFixture
) -> None:
    assert get_or_compute(cache, Writer(["\ud800"]), ["a"]) == ["\ud800"]
    assert cache.find([key_of("a")], bytes) == {}
    assert "cannot be cached" in caplog.text


def test_refreshing_computes_all_and_replaces_cached_values(cache: AnswerCache) -> None:
    get_or_compute(cache, Writer(["old"]), ["a"])
    writer = Writer(["new"])
    assert get_or_compute(cache, writer, ["a"], refresh=True) == ["new"]
    assert get_or_compute(cache, Writer(["newer"]), ["a"]) == ["new"]


def test_values_before_an_error_are_cached_and_no_lease_stays(cache: AnswerCache) -> None:
    def broken(positions: Sequence[int], on_value: OnValue[str]) -> list[str]:
        on_value(0, "a")
        raise RuntimeError(f"broken at {positions[1]}")

    keys = [key_of("a"), key_of("b")]
    with pytest.raises(RuntimeError, match="broken at 1"):
        CachedComputation(cache, TEXTS, broken).values(keys)
    assert cache.find(keys, bytes) == {keys[0]: b"a"}
    assert cache.leases.find_claimed(keys) == set()


def test_values_that_another_process_computes_are_waited_for(cache: AnswerCache) -> None:
    started, go_on = Event(), Event()

    def pause() -> None:
        started.set()
        go_on.wait()

    first = Writer(["a", "b"], telling=False, then=pause)
    thread = Thread(target=get_or_compute, args=(cache, first, ["a", "b"]))
    thread.start()
    started.wait()
    second = Writer(["b", "c"], then=go_on.set)
    assert get_or_compute(cache, second, ["b", "c"]) == ["b", "c"]
    thread.join()
    assert (first.asked, second.asked) == (["a", "b"], ["c"])


def test_values_that_another_process_failed_to_compute_are_computed(cache: AnswerCache) -> None:
    started, go_on = Event(), Event()

    def fail() -> None:
        started.set()
        go_on.wait()
        raise RuntimeError("broken")

    def first() -> None:
        with pytest.raises(RuntimeError):
            get_or_compute(cache, Writer(["a"], telling=False, then=fail), ["a"])

    thread = Thread(target=first)
    thread.start()
    started.wait()
    second = Writer(["b", "a"], then=go_on.set)
    assert get_or_compute(cache, second, ["b", "a"]) == ["b", "a"]
    thread.join()
    assert second.asked == ["b", "a"]


def test_dead_owners_are_not_waited_for(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LEASE_SECONDS", 0.5)
    dead = AnswerCache(url)
    dead.leases.claim([key_of("a")], "dead")
    monkeypatch.undo()
    writer = Writer(["a"])
    assert get_or_compute(AnswerCache(url), writer, ["a"]) == ["a"]
    assert writer.asked == ["a"]


def test_slow_owners_are_waited_for_while_they_live(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LEASE_SECONDS", 1.0)
    monkeypatch.setattr(write_queue, "HEARTBEAT_SECONDS", 0.0)
    cache = AnswerCache(url)
    started = Event()

    def think() -> None:
        started.set()
        time.sleep(3.0)

    slow = Writer(["a"], telling=False, then=think)
    thread = Thread(target=get_or_compute, args=(cache, slow, ["a"]))
    thread.start()
    started.wait()
    other = Writer(["a"])
    assert get_or_compute(cache, other, ["a"]) == ["a"]
    thread.join()
    assert other.asked == []


def test_an_answer_that_comes_between_look_up_and_claim_is_not_computed(
    cache: AnswerCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = cache.leases.claim

    def late(keys: Sequence[bytes], owner: str) -> set[bytes]:
        cache.add("test", {key_of("a"): b"a"})
        return claim(keys, owner)

    monkeypatch.setattr(cache.leases, "claim", late)
    writer = Writer(["a"])
    assert get_or_compute(cache, writer, ["a"]) == ["a"]
    assert writer.asked == []


def test_nothing_is_written_if_nothing_is_missing(cache: AnswerCache, monkeypatch: pytest.MonkeyPatch) -> None:
    get_or_compute(cache, Writer(["a"]), ["a"])
    monkeypatch.setattr(cache.database, "write", lambda _work: pytest.fail("it writes"))
    assert get_or_compute(cache, Writer([]), ["a"]) == ["a"]
    assert get_or_compute(cache, Writer([]), []) == []


def test_a_cancelled_run_computes_nothing_more_and_does_not_wait(cache: AnswerCache) -> None:
    writer = Writer(["a"])
    interruption = Cancellation()
    interruption.cancel()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tasks.runtime.cancellation.current_cancellation", lambda: interruption)
        with pytest.raises(CancelledError):
            get_or_compute(cache, writer, ["a"])
    assert writer.asked == []
    cache.leases.claim([key_of("a")], "another owner")

    def stage() -> None:
        with pytest.raises(CancelledError):
            get_or_compute(cache, writer, ["a"])

    with suppress(KeyboardInterrupt), cancellable():
        waiting = Thread(target=copy_context().run, args=(stage,))
        waiting.start()
        raise KeyboardInterrupt
    waiting.join(DEAD_SECONDS)
    assert not waiting.is_alive()
    assert writer.asked == []
