"""Ctrl-C and SIGTERM, in separate processes: the first stops the command cleanly, a second Ctrl-C ends it."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from deployments.cli._support.interrupts import INTERRUPTED, TERMINATED, handle_interrupts
from tests.waiting import DEAD_SECONDS

WORK = """
import signal, sqlite3, sys, threading, time
from deployments.cli._support import interrupts
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in the background
interrupts.ECHO_SECONDS, interrupts.MAX_EXIT_SECONDS = {echo}, {most}
def compute():
    while True: time.sleep(0.01)
try:
    with interrupts.handle_interrupts(lambda: {keeps}):
        threading.Thread(target=compute).start()
        print("begun", flush=True)
        {work}
except KeyboardInterrupt:
    print("kept", flush=True)
    sys.exit(interrupts.INTERRUPTED)
"""
SAID = "stopping: answers received so far are cached. Press Ctrl-C again to exit at once\n"
NEVER = 3600.0
SLEEP = "time.sleep(60)"
COMPUTE_OUTSIDE_PYTHON = (
    "sqlite3.connect(':memory:')"
    ".execute('with recursive n(i) as (select 1 union all select i from n) select sum(i) from n').fetchall()"
)


@contextmanager
def working(
    echo: float = 0.0, most: float = NEVER, keeps: bool = True, work: str = SLEEP
) -> "Iterator[subprocess.Popen[str]]":
    """A process that works, with a thread that never ends."""
    code = WORK.format(echo=echo, most=most, keeps=keeps, work=work)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=-1, stderr=-1, text=True, start_new_session=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def interrupt(process: "subprocess.Popen[str]", number: int = signal.SIGINT) -> str:
    """Send Ctrl-C or another signal, and wait for the first line about it."""
    assert process.stderr is not None
    process.send_signal(number)
    return process.stderr.readline()


def test_a_second_one_ends_the_process_at_once() -> None:
    with working() as process:
        assert interrupt(process) == SAID
        assert process.stdout is not None
        assert process.stdout.readline() == "kept\n"
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(DEAD_SECONDS) == INTERRUPTED


def test_a_second_one_ends_the_process_while_the_main_thread_cannot_handle_it() -> None:
    with working(work=COMPUTE_OUTSIDE_PYTHON) as process:
        time.sleep(0.5)  # it computes
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(DEAD_SECONDS) == INTERRUPTED


def test_sigterm_stops_the_command_as_ctrl_c_does() -> None:
    with working(most=0.5) as process:
        assert interrupt(process, signal.SIGTERM) == SAID
        assert process.wait(DEAD_SECONDS) == TERMINATED
        assert process.stdout is not None
        assert process.stdout.readline() == "kept\n"


def test_sigterm_that_prefect_sends_once_more_does_not_end_the_process() -> None:
    with working() as process:
        assert interrupt(process, signal.SIGTERM) == SAID
        assert process.stdout is not None
        assert process.stdout.readline() == "kept\n"
        process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(DEAD_SECONDS) == INTERRUPTED


def test_without_a_second_one_no_thread_keeps_the_process_for_long() -> None:
    with working(most=0.1) as process:
        assert interrupt(process) == SAID
        assert process.wait(DEAD_SECONDS) == INTERRUPTED


def test_echo_of_the_first_signal_is_not_a_second_one() -> None:
    with working(echo=NEVER, most=0.5) as process:
        assert interrupt(process) == SAID
        process.send_signal(signal.SIGINT)
        assert process.wait(DEAD_SECONDS) == INTERRUPTED
        assert process.stdout is not None
        assert process.stdout.readline() == "kept\n"


def test_command_that_stores_nothing_prints_nothing() -> None:
    with working(most=0.1, keeps=False) as process:
        assert interrupt(process) == ""
        assert process.wait(DEAD_SECONDS) == INTERRUPTED


def test_nothing_is_left_of_a_command_that_was_not_interrupted() -> None:
    code = """
import os, signal, threading
from deployments.cli._support import interrupts
signal.signal(signal.SIGINT, signal.default_int_handler)
files = os.listdir("/dev/fd")
with interrupts.handle_interrupts(lambda: True):
    (watcher,) = set(threading.enumerate()) - {threading.main_thread()}
watcher.join()
assert not watcher.is_alive()
assert os.listdir("/dev/fd") == files
assert signal.set_wakeup_fd(-1) == -1
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=DEAD_SECONDS)


def test_process_that_ignores_the_signal_continues_to_ignore_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "getsignal", lambda _number: signal.SIG_IGN)
    monkeypatch.setattr(signal, "signal", lambda *_: pytest.fail("the handler was set"))
    with handle_interrupts(lambda: True):
        pass
