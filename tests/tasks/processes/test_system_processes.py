"""Processes are found, and those that are started outlive the one that starts them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.processes import system_processes as processes
from tasks.processes.system_processes import end_group, find_exit_code, find_process, group_members, spawn_detached

_START_AND_END = """
import os, sys
from pathlib import Path
from tasks.processes.system_processes import spawn_detached

print(spawn_detached([sys.executable, "-c", "import time; time.sleep(600)"], Path(sys.argv[1]), os.environ).pid)
"""


@pytest.mark.parametrize("source", [processes._from_proc, processes._from_ps])
def test_every_source_knows_this_process(source: object) -> None:
    if source is processes._from_proc and not processes.BOOT_ID.exists():
        pytest.skip("no /proc on this system")
    assert callable(source)
    mine = [process for process in source() if process.pid == os.getpid()]
    assert [process.group for process in mine] == [os.getpgrp()]
    again = [process for process in source() if process.pid == os.getpid()]
    assert mine == again


def test_a_process_that_waits_for_its_parent_is_not_running() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""], start_new_session=True)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert find_process(child.pid) is None
    assert not any(group_members(child.pid))
    child.wait()


def test_a_process_outlives_a_program_that_ends_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "always", "-c", _START_AND_END, str(tmp_path / "log")]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    pid = int(ended.stdout)
    try:
        assert find_process(pid) is not None
        assert ended.stderr == ""
    finally:
        assert end_group(pid, lambda: any(group_members(pid)), 5.0)


def test_the_exit_code_is_known_to_the_process_that_started_it(tmp_path: Path) -> None:
    child = spawn_detached([sys.executable, "-c", "print('said'); raise SystemExit(7)"], tmp_path / "log", os.environ)
    assert child.wait() == 7
    assert find_exit_code(child.pid) == 7
    assert find_exit_code(os.getpid()) is None
    assert (tmp_path / "log").read_text() == "said\n"
