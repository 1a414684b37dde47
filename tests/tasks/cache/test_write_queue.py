"""Computations of one process share a thread that writes their answers."""

import logging
from collections.abc import Collection, Sequence
from threading import Event, Thread
from threading import enumerate as threads

import pytest

from tasks.cache import write_queue
from tasks.cache.write_queue import MAX_UNWRITTEN, QueuedValue, WriteQueue
from tasks.runtime.threads import ThreadLimitError
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


class SlowDatabase(Log):
    """A database that writes when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.may_write = Event()

    def write(self, values: Sequence[QueuedValue]) -> None:
        self.may_write.wait(SECONDS)
        super().write(values)


def test_who_puts_faster_than_the_database_writes_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_queue, "LONGEST_WAIT_SECONDS", SECONDS)
    database, queue, put = SlowDatabase(), WriteQueue(), []
    queue.open("one", database.write, database.beat)

    def put_many() -> None:
        for number in range(1000):
            queue.put(value("one", str(number)))
            put.append(number)

    putting = Thread(target=put_many)
    putting.start()
    wait_until(lambda: len(put) == MAX_UNWRITTEN)
    putting.join(4 * write_queue.FLUSH_SECONDS)
    assert len(put) == MAX_UNWRITTEN
    database.may_write.set()
    putting.join(SECONDS)
    assert not putting.is_alive()
    queue.close("one")
    assert [key for keys in database.written for key in keys] == [f"one {number}" for number in range(1000)]


def test_a_database_that_hangs_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_queue, "LONGEST_WAIT_SECONDS", 0.05)
    waits = 0

    class Counted(write_queue._Waiting):
        def _wait_until_written(self) -> None:
            nonlocal waits
            waits += 1
            super()._wait_until_written()

    monkeypatch.setattr(write_queue, "_Waiting", Counted)
    database, queue = SlowDatabase(), WriteQueue()
    queue.open("one", database.write, database.beat)
    for number in range(2 * MAX_UNWRITTEN):
        queue.put(value("one", str(number)))
    assert not database.written
    assert waits == 1
    database.may_write.set()
    queue.close("one")
    assert sum(map(len, database.written)) == 2 * MAX_UNWRITTEN


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


def test_an_owner_leaves_a_database_that_hangs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(write_queue, "CLOSE_SECONDS", 0.05)
    log, queue, answered = Log(), WriteQueue(), Event()

    def hang(_values: Sequence[QueuedValue]) -> None:
        answered.wait(SECONDS)

    queue.open("one", hang, log.beat)
    queue.put(value("one", "a"))
    assert queue.close("one")
    assert "answers are not written to the cache after 0.05 seconds" in caplog.text
    answered.set()


def test_an_owner_without_a_thread_gets_an_error_and_the_next_one_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    log, queue = Log(), WriteQueue()

    def refuse(_self: Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(Thread, "start", refuse)
        with pytest.raises(ThreadLimitError, match="'answers' cannot be started"):
            queue.open("one", log.write, log.beat)
    queue.open("two", log.write, log.beat)
    queue.put(value("two", "a"))
    assert queue.close("two")
    assert log.written == [["two a"]]
