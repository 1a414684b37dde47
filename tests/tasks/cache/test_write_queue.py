"""Computations of one process share a thread that writes their answers."""

import logging
from collections.abc import Collection, Sequence
from threading import Event, Thread
from threading import enumerate as threads

import pytest

from tasks.cache import write_queue
from tasks.cache.write_queue import QueuedValue, WriteQueue
from tests.waiting import wait_until

SECONDS = 20.0


class Log:
    """Log of the values that were written together, and of the heartbeats."""

    def __init__(self) -> None:
        self.written: list[list[str]] = []
        self.beats: list[set[str]] = []

    def write(self, values: Sequence[QueuedValue]) -> None:
        self.written.append([f"{value.owner} {value.key.decode()}" for value in values])

    def beat(self, owners: Collection[str]) -> None:
        self.beats.append(set(owners))


def value(owner: str, key: str) -> QueuedValue:
    return QueuedValue("test", key.encode(), b"", owner, False)


def test_values_of_several_owners_are_written_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_queue, "FLUSH_SECONDS", SECONDS)
    log, queue = Log(), WriteQueue()
    queue.open("one", log.write, log.beat)
    queue.open("two", log.write, log.beat)
    for owner, key in (("one", "a"), ("two", "b"), ("one", "c")):
        queue.put(value(owner, key))
    assert not queue.close("one")
    assert log.written == [["one a", "two b", "one c"]]
    assert queue.close("two")


def test_owners_that_leave_at_once_all_leave() -> None:
    log, queue = Log(), WriteQueue()
    for round_number in range(20):
        owners = [f"{round_number}.{i}" for i in range(6)]
        for owner in owners:
            queue.open(owner, log.write, log.beat)
            queue.put(value(owner, owner))
        leaving = [Thread(target=queue.close, args=(owner,)) for owner in owners]
        for thread in leaving:
            thread.start()
        for thread in leaving:
            thread.join(SECONDS)
            assert not thread.is_alive()
    assert sum(map(len, log.written)) == 120
    wait_until(lambda: not any(thread.name == "answers" for thread in threads()))


def test_an_owner_leaves_although_writing_fails(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_values: Sequence[QueuedValue]) -> None:
        raise ZeroDivisionError

    queue = WriteQueue()
    queue.open("one", fail, Log().beat)
    queue.put(value("one", "a"))
    with caplog.at_level(logging.ERROR):
        closing = Thread(target=queue.close, args=("one",))
        closing.start()
        closing.join(SECONDS)
    assert not closing.is_alive()
    assert "could not be written" in caplog.text


def test_the_heartbeats_name_the_owners_that_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_queue, "HEARTBEAT_SECONDS", 0.0)
    log, queue, beaten = Log(), WriteQueue(), Event()

    def beat(owners: Collection[str]) -> None:
        log.beat(owners)
        beaten.set()

    queue.open("one", log.write, beat)
    queue.open("two", log.write, beat)
    queue.close("one")
    beaten.clear()
    wait_until(beaten.is_set)
    assert log.beats[-1] == {"two"}
    queue.close("two")
