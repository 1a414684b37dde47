"""Handle Ctrl-C and SIGTERM: the first one stops a run cleanly, a second Ctrl-C ends the process."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Timer, current_thread, main_thread
from types import FrameType
from typing import Any

from deployments.cli._support.console import stderr
from tasks.runtime.threads import start_thread

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C has interrupted."""

TERMINATED = 143
"""Exit code of a command that SIGTERM has interrupted."""

MAX_EXIT_SECONDS = 2.0
"""Seconds that the process waits for computations in other threads at exit."""

_DEFAULTS: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
"""Signal to handle -> handler of a process that neither handles nor ignores it."""

ECHO_SECONDS = 0.5
"""A second signal within these seconds is the same Ctrl-C, sent by both the terminal and a parent process."""

_STOPPING = "stopping: answers received so far are cached. Press Ctrl-C again to exit at once"


class Terminated(KeyboardInterrupt):
    """SIGTERM interrupted the command, as a service manager does that stops it."""


@contextmanager
def handle_interrupts(keeps_work: Callable[[], bool]) -> Iterator[None]:
    """Respond to Ctrl-C and SIGTERM in the block at once, and end the process at a second Ctrl-C.

    Answers are cached as they arrive, so that an immediate exit loses little. The second Ctrl-C ends the process even
    if the main thread cannot run the signal's handler, because it waits for a lock or computes outside Python. A
    process that ignores a signal, such as a background process of a shell, continues to ignore it.

    During a flow run, Prefect handles SIGTERM: it ends the run, and sends the signal once more for this handler. So a
    second SIGTERM means no more than the first.

    Args:
        keeps_work: Function that returns whether the command stores results; if not, the first signal prints nothing.

    Raises:
        KeyboardInterrupt: Ctrl-C interrupted the block.
        Terminated: SIGTERM interrupted the block.
    """
    handled = (
        [number for number, default in _DEFAULTS.items() if signal.getsignal(number) is default]
        if current_thread() is main_thread()
        else []
    )
    if not handled:
        yield
        return
    interrupted: int | None = None  # the number of the signal

    def interrupt(number: int, _frame: FrameType | None) -> None:
        nonlocal interrupted
        if interrupted is not None:
            return  # the thread decides whether it is the second one
        interrupted = number
        if keeps_work():
            with suppress(RuntimeError):  # the signal interrupted another write to stderr
                stderr.print(_STOPPING)
        raise Terminated if number == signal.SIGTERM else KeyboardInterrupt

    received, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    start_thread("interrupts", _exit_at_second, received)
    previous = signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    for number in handled:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        if interrupted is not None:
            _exit_soon(TERMINATED if interrupted == signal.SIGTERM else INTERRUPTED)
        else:
            signal.set_wakeup_fd(previous)
            os.close(wakeup)  # the thread ends
            for number in handled:
                signal.signal(number, _DEFAULTS[number])


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
            if number[0] not in _DEFAULTS:
                continue
            if first is None:
                first = time.monotonic()
            elif number[0] == signal.SIGINT and time.monotonic() - first > ECHO_SECONDS:
                _exit_now()


def _exit_soon(code: int) -> None:
    """Exit soon even if other threads are still computing: their results are not needed."""
    timer = Timer(MAX_EXIT_SECONDS, _exit_now, (code,))
    timer.daemon = True
    timer.start()


def _exit_now(code: int = INTERRUPTED) -> None:
    with suppress(OSError, RuntimeError):
        stderr.show_cursor()  # the progress display has hidden it
        sys.stderr.flush()
    os._exit(code)
