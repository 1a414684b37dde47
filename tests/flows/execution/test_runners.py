"""Runners: a run waits for its running stages, unless it is interrupted."""

from contextlib import suppress
from threading import Event, Thread
from typing import Any

import pytest
from prefect.task_runners import ThreadPoolTaskRunner

from flows.config.run_config import RunConfig
from flows.config.runner_options import RunnerOptions
from flows.execution import runners
from flows.execution.runners import runner_of
from flows.planning.planner import plan_without_data
from tests.waiting import DEAD_SECONDS


class Stuck(ThreadPoolTaskRunner[None]):
    """A runner whose stages end when an event is set."""

    def __init__(self) -> None:
        super().__init__(1)
        self.may_end, self.ended = Event(), Event()

    def __exit__(self, *_: object) -> None:
        assert self.may_end.wait(DEAD_SECONDS)
        super().__exit__(None, None, None)
        self.ended.set()


def test_interrupted_run_does_not_wait_for_slow_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runners, "CANCELLED_SECONDS", 0.01)
    runner: Any = Stuck()
    with suppress(KeyboardInterrupt), runners._enter(runner, RunnerOptions()):
        raise KeyboardInterrupt
    assert not runner.ended.is_set()
    runner.may_end.set()
    assert runner.ended.wait(DEAD_SECONDS)


@pytest.mark.parametrize("error", [None, ValueError])
def test_run_waits_for_its_stages(monkeypatch: pytest.MonkeyPatch, error: type[Exception] | None) -> None:
    monkeypatch.setattr(runners, "CANCELLED_SECONDS", 0.01)
    runner: Any = Stuck()
    begun = Event()

    def run() -> None:
        with suppress(ValueError), runners._enter(runner, RunnerOptions()):
            begun.set()
            if error is not None:
                raise error

    running = Thread(target=run)
    running.start()
    assert begun.wait(DEAD_SECONDS)
    running.join(0.1)
    assert running.is_alive()
    runner.may_end.set()
    running.join(DEAD_SECONDS)
    assert runner.ended.is_set()


def test_stages_run_in_threads_by_default() -> None:
    assert isinstance(runner_of(plan_without_data(RunConfig()).storage, None), ThreadPoolTaskRunner)
