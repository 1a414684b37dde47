"""How a run ends: it waits for the stages that have begun, but not where somebody has interrupted it."""

from contextlib import suppress
from threading import Event, Thread
from typing import Any

import pytest
from prefect.task_runners import ThreadPoolTaskRunner

from flows.config.run_config import RunConfig
from flows.execution import runners
from flows.execution.runners import runner_of


class Stuck(ThreadPoolTaskRunner[None]):
    """A runner whose stages end when they are told to."""

    def __init__(self) -> None:
        super().__init__(1)
        self.may_end, self.ended = Event(), Event()

    def __exit__(self, *_: object) -> None:
        assert self.may_end.wait(30)
        super().__exit__(None, None, None)
        self.ended.set()


def test_an_interrupted_run_does_not_wait_for_a_stage_that_computes_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runners, "CANCELLED_SECONDS", 0.01)
    runner: Any = Stuck()
    with suppress(KeyboardInterrupt), runners._enter(runner, RunConfig()):
        raise KeyboardInterrupt
    assert not runner.ended.is_set()
    runner.may_end.set()
    assert runner.ended.wait(30)


@pytest.mark.parametrize("error", [None, ValueError])
def test_any_other_run_waits(monkeypatch: pytest.MonkeyPatch, error: type[Exception] | None) -> None:
    monkeypatch.setattr(runners, "CANCELLED_SECONDS", 0.01)
    runner: Any = Stuck()
    begun = Event()

    def run() -> None:
        with suppress(ValueError), runners._enter(runner, RunConfig()):
            begun.set()
            if error is not None:
                raise error

    running = Thread(target=run)
    running.start()
    assert begun.wait(30)
    running.join(0.1)
    assert running.is_alive()
    runner.may_end.set()
    running.join(30)
    assert runner.ended.is_set()


def test_stages_run_in_threads_by_default() -> None:
    assert isinstance(runner_of(RunConfig()), ThreadPoolTaskRunner)
