"""Cancellation reaches the threads of an interrupted run, and no thread of the next run."""

from asyncio import CancelledError
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from threading import Event, Thread

import pytest

from tasks.runtime.cancellation import Cancellation, cancellable, current_cancellation
from tests.waiting import DEAD_SECONDS


def is_cancelled(work: Callable[[], None]) -> bool:
    try:
        work()
    except CancelledError:
        return True
    return False


def test_threads_of_an_interrupted_block_are_cancelled() -> None:
    found: list[bool] = []
    interrupted = Event()

    def compute() -> None:
        assert interrupted.wait(DEAD_SECONDS)
        found.append(is_cancelled(current_cancellation().check))

    with suppress(KeyboardInterrupt), cancellable():
        worker = Thread(target=copy_context().run, args=(compute,))
        worker.start()
        raise KeyboardInterrupt
    assert not is_cancelled(current_cancellation().check)
    interrupted.set()
    worker.join()
    assert found == [True]


def test_block_that_fails_or_ends_cancels_nothing() -> None:
    with pytest.raises(ValueError, match="wrong"), cancellable() as failed:
        raise ValueError("wrong")
    with cancellable() as ended:
        pass
    assert not is_cancelled(failed.check)
    assert not is_cancelled(ended.check)


def test_a_listener_is_called_once_and_only_while_it_listens() -> None:
    interruption = Cancellation()
    heard: list[str] = []
    with interruption.on_cancel(lambda: heard.append("early")):
        pass
    with interruption.on_cancel(lambda: heard.append("in time")):
        interruption.cancel()
    with pytest.raises(CancelledError), interruption.on_cancel(lambda: heard.append("late")):
        heard.append("in the block")
    assert heard == ["in time"]
