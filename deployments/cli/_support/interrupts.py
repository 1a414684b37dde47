"""Handle Ctrl-C: the first one stops a run cleanly, the second one ends the process."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Timer, current_thread, main_thread
from types import FrameType

from deployments.cli._support.console import stderr
from tasks.runtime.threads import start_thread

INTERRUPTED = 130
"""Exit code of an interrupted command."""

MAX_EXIT_SECONDS = 2.0
"""Seconds that the process waits for computations in other threads at exit."""

ECHO_SECONDS = 0.5
"""A second signal within these seconds is the same Ctrl-C, sent by both the terminal and a parent process."""

_STOPPING = "stopping: answers received so far are cached. Press Ctrl-C again to exit at once"


@contextmanager
def handle_interrupts(keeps_work: Callable[[], bool]) -> Iterator[None]:
    """Respond to Ctrl-C in the block at once, and end the process at a second one.

    Answers are cached as they arrive, so that an immediate exit loses little. The second Ctrl-C ends the process even
    if the main thread cannot run the signal's handler, because it waits for a lock or computes outside Python. A
    process that ignores the signal, such as a background process of a shell, continues to ignore it.

    Args:
        keeps_work: Function that returns whether the command stores results; if not, the first Ctrl-C prints nothing.
    """
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    is_interrupted = False

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        nonlocal is_interrupted
        if is_interrupted:
            return  # the thread decides whether it is the second one
        is_interrupted = True
        if keeps_work():
            with suppress(RuntimeError):  # the signal interrupted another write to stderr
                stderr.print(_STOPPING)
        raise KeyboardInterrupt

    received, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    start_thread("interrupts", _exit_at_second, received)
    previous = signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        if is_interrupted:
            _exit_soon()
        else:
            signal.set_wakeup_fd(previous)
            os.close(wakeup)  # the thread ends
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _exit_at_second(received: int) -> None:
    """Read the numbers of signals as they arrive, and exit at the second Ctrl-C.

    Python runs a signal's handler in the main thread only, between two instructions: a signal that comes just before
    the thread begins to wait for a lock is handled when the wait ends, which may be never.

    Args:
        received: File descriptor that yields the numbers: see `signal.set_wakeup_fd`. It is closed at the end.
    """
    first: float | None = None
    with open(received, "rb", buffering=0) as numbers:
        while number := numbers.read(1):
            if number[0] != signal.SIGINT:
                continue
            if first is None:
                first = time.monotonic()
            elif time.monotonic() - first > ECHO_SECONDS:
                _exit_now()


def _exit_soon() -> None:
    """Exit soon even if other threads are still computing: their results are not needed."""
    timer = Timer(MAX_EXIT_SECONDS, _exit_now)
    timer.daemon = True
    timer.start()


def _exit_now() -> None:
    with suppress(OSError, RuntimeError):
        stderr.show_cursor()  # the progress display has hidden it
        sys.stderr.flush()
    os._exit(INTERRUPTED)
