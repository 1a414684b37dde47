"""Locks are held by one holder at a time, across threads and processes, and end with the process that holds them."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tasks.prefect_support.locks import ProcessLocks

HOLD = """
import sys, time
from pathlib import Path
from tasks.prefect_support.locks import ProcessLocks
ProcessLocks(Path(sys.argv[1])).acquire_lock("abc", "other")
print("held", flush=True)
time.sleep(600)
"""


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    locks = ProcessLocks(tmp_path)
    assert locks.acquire_lock("abc", "one")
    assert not locks.acquire_lock("abc", "two", acquire_timeout=0)
    assert locks.is_locked("abc")
    assert (locks.is_lock_holder("abc", "one"), locks.is_lock_holder("abc", "two")) == (True, False)
    locks.release_lock("abc", "one")
    assert not locks.is_locked("abc")
    assert locks.acquire_lock("abc", "two", acquire_timeout=0)
    locks.release_lock("abc", "two")


def test_other_keys_are_free(tmp_path: Path) -> None:
    locks = ProcessLocks(tmp_path)
    locks.acquire_lock("abc", "one")
    assert locks.acquire_lock("xyz", "two", acquire_timeout=0)
    locks.release_lock("abc", "one")
    locks.release_lock("xyz", "two")


def test_only_its_holder_can_release_a_lock(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not hold"):
        ProcessLocks(tmp_path).release_lock("abc", "one")


def test_a_waiting_thread_gets_the_lock_when_it_is_released(tmp_path: Path) -> None:
    locks = ProcessLocks(tmp_path)
    locks.acquire_lock("abc", "one")
    got: list[bool] = []
    waiting = threading.Thread(target=lambda: got.append(locks.acquire_lock("abc", "two")))
    waiting.start()
    assert not locks.wait_for_lock("abc", timeout=0)
    locks.release_lock("abc", "one")
    waiting.join(timeout=30)
    assert got == [True]
    locks.release_lock("abc", "two")


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        locks = ProcessLocks(tmp_path)
        assert not locks.acquire_lock("abc", "one", acquire_timeout=0)
        os.kill(holder.pid, signal.SIGKILL)
    assert locks.acquire_lock("abc", "one", acquire_timeout=30)
    locks.release_lock("abc", "one")
