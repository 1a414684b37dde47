"""Ctrl-C: the first one ends a run in good order and says so at once, the second one ends the process."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Timer, current_thread, main_thread
from types import FrameType

from deployments.cli._support.console import stderr

INTERRUPTED = 130
"""Exit code of an interrupted command."""

MOST_SECONDS = 2.0
"""How long the end of the process may wait for what computes in other threads, when all is said and kept."""

ECHO_SECONDS = 0.5
"""What comes so soon after the first Ctrl-C is the same one, which the terminal and a parent process have both sent."""

_ENDING = "ending: what has been answered is kept. Ctrl-C again ends at once"


@contextmanager
def handle_interrupts(keeps_work: Callable[[], bool]) -> Iterator[None]:
    """Has Ctrl-C in the block answered at once, and a second one end the process, until its very end.

    Answers are written while others are waited for, so that an end at once loses a moment of judging. A process that
    ignores the signal, as one in the background of a shell does, goes on doing so.

    Args:
        keeps_work: whether there is anything to be kept; else the first Ctrl-C is not worth a word of its own.
    """
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    told: float | None = None

    def end(_number: int, _frame: FrameType | None) -> None:
        nonlocal told
        if told is not None:
            if time.monotonic() - told > ECHO_SECONDS:
                _end_now()
            return
        told = time.monotonic()
        if keeps_work():
            with suppress(RuntimeError):  # a line to stderr was being written
                stderr.print(_ENDING, markup=False, soft_wrap=True)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        if told is None:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        else:
            _end_soon()


def _end_soon() -> None:
    """Threads that compute keep a process alive; nobody waits for what they are at."""
    timer = Timer(MOST_SECONDS, _end_now)
    timer.daemon = True
    timer.start()


def _end_now() -> None:
    with suppress(OSError, RuntimeError):
        stderr.show_cursor()  # a display of the progress has hidden it
        sys.stderr.flush()
    os._exit(INTERRUPTED)
