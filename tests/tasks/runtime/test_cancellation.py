"""An interrupted run: the stages in other threads hear of it, and those of the next run do not."""

from asyncio import CancelledError
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from threading import Event, Thread

import pytest

from tasks.runtime.cancellation import Cancellation, cancellable, current_cancellation


def stopped(work: Callable[[], None]) -> bool:
    try:
        work()
    except CancelledError:
        return True
    return False


def test_the_threads_of_an_interrupted_block_are_stopped() -> None:
    found: list[bool] = []
    interrupted = Event()

    def compute() -> None:
        assert interrupted.wait(10)
        found.append(stopped(current_cancellation().check))

    with suppress(KeyboardInterrupt), cancellable():
        of_the_run = Thread(target=copy_context().run, args=(compute,))
        of_the_run.start()
        raise KeyboardInterrupt
    assert not stopped(current_cancellation().check)
    interrupted.set()
    of_the_run.join()
    assert found == [True]


def test_a_block_that_fails_or_ends_stops_nobody() -> None:
    with pytest.raises(ValueError, match="wrong"), cancellable() as failed:
        raise ValueError("wrong")
    with cancellable() as ended:
        pass
    assert not stopped(failed.check)
    assert not stopped(ended.check)


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
