"""The list of processes and the excerpts of logs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.processes import running_processes as processes
from tasks.processes.process_log import excerpt, last_line


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
    assert processes.find_process(child.pid) is None
    assert not processes.has_members(child.pid)
    assert processes.end_group(child.pid, 1.0)
    child.wait()


def test_the_last_line_is_the_last_state_of_a_progress_bar(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert last_line(log) == ""
    log.write_text("start\nloading:  10%\rloading:  20%\rloading: 100%\r\n\n")
    assert last_line(log) == "loading: 100%"


def test_an_excerpt_names_each_error_once_and_hides_secrets(tmp_path: Path) -> None:
    log = tmp_path / "log"
    errors = "torch.OutOfMemoryError: CUDA out of memory\n" * 3 + "INFO `OSError: too many files`\n"
    log.write_text(errors + "INFO key=verysecret\n" + "INFO x 1\n" * 20)
    shown = excerpt(log, ["verysecret", "1", ""])
    assert shown.startswith("Errors in it:\n  torch.OutOfMemoryError: CUDA out of memory\nThe end of its log")
    assert "verysecret" not in shown
    assert "INFO x 1" in shown
