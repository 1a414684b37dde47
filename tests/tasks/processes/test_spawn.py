"""Processes that outlive the one that starts them."""

import os
import subprocess
import sys
from pathlib import Path

from tasks.processes.running_processes import end_group, find_process
from tasks.processes.spawn import find_exit_code, spawn_detached

_START_AND_END = """
import os, sys
from pathlib import Path
from tasks.processes.spawn import spawn_detached

print(spawn_detached([sys.executable, "-c", "import time; time.sleep(600)"], Path(sys.argv[1]), os.environ).pid)
"""


def test_a_process_outlives_a_program_that_ends_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "always", "-c", _START_AND_END, str(tmp_path / "log")]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    pid = int(ended.stdout)
    try:
        assert find_process(pid) is not None
        assert ended.stderr == ""
    finally:
        end_group(pid, 5.0)


def test_the_exit_code_is_known_to_the_process_that_started_it(tmp_path: Path) -> None:
    child = spawn_detached([sys.executable, "-c", "print('said'); raise SystemExit(7)"], tmp_path / "log", os.environ)
    assert child.wait() == 7
    assert find_exit_code(child.pid) == 7
    assert find_exit_code(os.getpid()) is None
    assert (tmp_path / "log").read_text() == "said\n"
