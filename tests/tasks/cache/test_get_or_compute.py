"""What is there is found, what is missing is computed once, by one of those who miss it."""

import time
from asyncio import CancelledError
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from threading import Event, Thread

import pytest

from tasks.cache import leases
from tasks.cache import writer as keeper
from tasks.cache.answer_cache import AnswerCache
from tasks.cache.codec import Codec
from tasks.cache.get_or_compute import CachedComputation, Keep
from tasks.runtime.cancellation import Cancellation, cancellable
from tests.tasks.cache.helpers import key_of

TEXTS: Codec[str] = Codec("test", 1, lambda text: None if text == "void" else text.encode(), bytes.decode)


class Writer:
    """Computes the text of each position, and notes which it was asked for."""

    def __init__(self, texts: Sequence[str], telling: bool = True, then: Callable[[], None] = lambda: None) -> None:
        self._texts = texts
        self._telling = telling
        self._then = then
        self.asked: list[str] = []

    def __call__(self, positions: Sequence[int], kept: Keep[str]) -> list[str]:
        values = [self._texts[position] for position in positions]
        self.asked += values
        for place, value in enumerate(values) if self._telling else ():
            kept(place, value)
        self._then()
        return values


def recall(store: AnswerCache, writer: Writer, texts: Sequence[str], refresh: bool = False) -> list[str]:
    return CachedComputation(store, TEXTS, writer, refresh).values([key_of(text) for text in texts])


@pytest.mark.parametrize("telling", [True, False])
def test_each_key_is_computed_once_and_found_after(store: AnswerCache, telling: bool) -> None:
    texts = ["b", "a", "b", "c"]
    writer = Writer(texts, telling)
    assert recall(store, writer, texts) == texts
    assert writer.asked == ["b", "a", "c"]
    later = Writer(["c", "d"])
    assert recall(store, later, ["c", "d"]) == ["c", "d"]
    assert later.asked == ["d"]


def test_every_position_is_told_of_once(store: AnswerCache) -> None:
    recall(store, Writer(["a"]), ["a"])
    texts = ["a", "b", "a", "b", "c"]
    told: list[tuple[int, str]] = []
    CachedComputation(store, TEXTS, Writer(texts)).values(
        [key_of(text) for text in texts], lambda *what: told.append(what)
    )
    assert sorted(told) == list(enumerate(texts))


def test_a_value_that_is_not_to_be_kept_is_computed_again(store: AnswerCache) -> None:
    for _ in range(2):
        writer = Writer(["void", "a"])
        assert recall(store, writer, ["void", "a"]) == ["void", "a"]
        assert "void" in writer.asked
    assert store.leases.claimed([key_of("void")]) == set()


def test_a_value_that_can_not_become_bytes_is_told_of_and_not_kept(
    store: AnswerCache, caplog: pytest.LogCaptureFixture
) -> None:
    assert recall(store, Writer(["\ud800"]), ["a"]) == ["\ud800"]
    assert store.find([key_of("a")], bytes) == {}
    assert "can not be kept" in caplog.text


def test_refreshing_computes_all_and_replaces_what_is_there(store: AnswerCache) -> None:
    recall(store, Writer(["old"]), ["a"])
    writer = Writer(["new"])
    assert recall(store, writer, ["a"], refresh=True) == ["new"]
    assert recall(store, Writer(["newer"]), ["a"]) == ["new"]


def test_what_came_before_an_error_is_kept_and_nothing_stays_claimed(store: AnswerCache) -> None:
    def broken(positions: Sequence[int], kept: Keep[str]) -> list[str]:
        kept(0, "a")
        raise RuntimeError(f"broken at {positions[1]}")

    keys = [key_of("a"), key_of("b")]
    with pytest.raises(RuntimeError, match="broken at 1"):
        CachedComputation(store, TEXTS, broken).values(keys)
    assert store.find(keys, bytes) == {keys[0]: b"a"}
    assert store.leases.claimed(keys) == set()


def test_what_somebody_else_is_computing_is_waited_for(store: AnswerCache) -> None:
    started, go_on = Event(), Event()

    def pause() -> None:
        started.set()
        go_on.wait()

    first = Writer(["a", "b"], telling=False, then=pause)
    thread = Thread(target=recall, args=(store, first, ["a", "b"]))
    thread.start()
    started.wait()
    second = Writer(["b", "c"], then=go_on.set)
    assert recall(store, second, ["b", "c"]) == ["b", "c"]
    thread.join()
    assert (first.asked, second.asked) == (["a", "b"], ["c"])


def test_what_somebody_else_fails_to_compute_is_computed(store: AnswerCache) -> None:
    started, go_on = Event(), Event()

    def fail() -> None:
        started.set()
        go_on.wait()
        raise RuntimeError("broken")

    def first() -> None:
        with pytest.raises(RuntimeError):
            recall(store, Writer(["a"], telling=False, then=fail), ["a"])

    thread = Thread(target=first)
    thread.start()
    started.wait()
    second = Writer(["b", "a"], then=go_on.set)
    assert recall(store, second, ["b", "a"]) == ["b", "a"]
    thread.join()
    assert second.asked == ["b", "a"]


def test_the_dead_are_not_waited_for(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LEASE_SECONDS", 0.5)
    dead = AnswerCache(url)
    dead.leases.claim([key_of("a")], "dead")
    monkeypatch.undo()
    writer = Writer(["a"])
    assert recall(AnswerCache(url), writer, ["a"]) == ["a"]
    assert writer.asked == ["a"]


def test_the_slow_are_waited_for_while_they_live(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LEASE_SECONDS", 1.0)
    monkeypatch.setattr(keeper, "HEARTBEAT_SECONDS", 0.0)
    store = AnswerCache(url)
    started = Event()

    def think() -> None:
        started.set()
        time.sleep(3.0)

    slow = Writer(["a"], telling=False, then=think)
    thread = Thread(target=recall, args=(store, slow, ["a"]))
    thread.start()
    started.wait()
    other = Writer(["a"])
    assert recall(store, other, ["a"]) == ["a"]
    thread.join()
    assert other.asked == []


def test_an_answer_that_comes_between_look_up_and_claim_is_not_computed(
    store: AnswerCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = store.leases.claim

    def late(keys: Sequence[bytes], owner: str) -> set[bytes]:
        store.add("test", {key_of("a"): b"a"})
        return claim(keys, owner)

    monkeypatch.setattr(store.leases, "claim", late)
    writer = Writer(["a"])
    assert recall(store, writer, ["a"]) == ["a"]
    assert writer.asked == []


def test_nothing_is_written_where_nothing_is_missing(store: AnswerCache, monkeypatch: pytest.MonkeyPatch) -> None:
    recall(store, Writer(["a"]), ["a"])
    monkeypatch.setattr(store.database, "write", lambda _work: pytest.fail("it writes"))
    assert recall(store, Writer([]), ["a"]) == ["a"]
    assert recall(store, Writer([]), []) == []


def test_an_interrupted_run_computes_nothing_more_and_waits_for_nobody(store: AnswerCache) -> None:
    writer = Writer(["a"])
    interruption = Cancellation()
    interruption.cancel()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tasks.runtime.cancellation.current_cancellation", lambda: interruption)
        with pytest.raises(CancelledError):
            recall(store, writer, ["a"])
    assert writer.asked == []
    store.leases.claim([key_of("a")], "somebody else")

    def stage() -> None:
        with pytest.raises(CancelledError):
            recall(store, writer, ["a"])

    with suppress(KeyboardInterrupt), cancellable():
        waiting = Thread(target=copy_context().run, args=(stage,))
        waiting.start()
        raise KeyboardInterrupt
    waiting.join(30)
    assert not waiting.is_alive()
    assert writer.asked == []
