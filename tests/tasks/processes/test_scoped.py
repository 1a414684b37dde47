"""A judge that a run owns ends with it, however the run ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from metric_core.errors import JudgeError
from tasks.processes.judge_service import JudgeRecord, judge_status, launch_for_scope, launch_judge
from tests.tasks.processes.conftest import ROOT, Settings, is_gone
from tests.waiting import wait_until

RUN = """
import sys, time
from pathlib import Path
from tasks.options.launch_options import LaunchSettings
from tasks.processes.judge_service import launch_for_scope

with launch_for_scope(LaunchSettings.model_validate_json(sys.argv[1]), Path(sys.argv[2])) as judge:
    print(judge.pid, flush=True)
    time.sleep(60)
"""


def test_it_is_there_for_the_block_only(home: Path, settings: Settings) -> None:
    with launch_for_scope(settings("child"), home) as judge:
        status = judge_status(home)
        assert status.healthy
        assert f"owned by process {os.getpid()}" in str(status)
    assert is_gone(judge.pid)
    assert judge_status(home).record is None


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_in_the_block_stops_it(home: Path, settings: Settings, error: type[BaseException]) -> None:
    seen: list[JudgeRecord] = []

    def fail() -> None:
        with launch_for_scope(settings(), home) as judge:
            seen.append(judge)
            raise error

    with pytest.raises(error):
        fail()
    assert is_gone(seen[0].pid)


def test_a_stubborn_one_is_killed(home: Path, settings: Settings) -> None:
    with launch_for_scope(settings("stubborn,child"), home) as judge:
        pass
    assert is_gone(judge.pid)


def test_one_that_does_not_start_is_explained_and_leaves_nothing(home: Path, settings: Settings) -> None:
    with pytest.raises(JudgeError, match="exit code 1 before it was ready"), launch_for_scope(settings("exit"), home):
        pytest.fail("the block must not run")
    assert judge_status(home).record is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("behaviour", ["child", "stubborn,child"])
def test_it_ends_when_its_run_is_killed(home: Path, settings: Settings, number: signal.Signals, behaviour: str) -> None:
    wanted = settings(behaviour)
    told = wanted.model_dump_json(exclude={"environment"})
    variables = wanted.variables()
    told = told[:-1] + ',"environment":' + str(variables).replace("'", '"') + "}"
    script = f"from tasks.processes.judge_service import JudgeService\nJudgeService.stop_seconds = 1.0\n{RUN}"
    with subprocess.Popen(
        [sys.executable, "-c", script, told, str(home)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdout is not None
        pid = int(run.stdout.readline())
        assert not is_gone(pid)
        run.send_signal(number)
    wait_until(lambda: is_gone(pid))
    assert judge_status(home).record is None


def test_a_kept_judge_with_the_same_settings_is_used_and_left_running(home: Path, settings: Settings) -> None:
    kept = launch_judge(settings(), home)
    with launch_for_scope(settings(), home) as judge:
        assert judge == kept
    assert judge_status(home).healthy


def test_a_judge_that_a_run_owns_is_not_shared(home: Path, settings: Settings) -> None:
    with launch_for_scope(settings(), home) as judge:
        with pytest.raises(JudgeError, match=f"belongs to the run of process {os.getpid()}"):
            launch_judge(settings(), home)
        assert not is_gone(judge.pid)
