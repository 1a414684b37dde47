"""End a process: ask it to end, then kill it."""

import signal
import time
from collections.abc import Callable
from contextlib import suppress

POLL_SECONDS = 0.05


def end_process(send: Callable[[signal.Signals], object], is_running: Callable[[], bool], timeout: float) -> bool:
    """Send SIGTERM, and SIGKILL if the process does not end in time.

    Args:
        send: Sends a signal to the process; may raise ProcessLookupError.
        is_running: Returns whether the process is still running.
        timeout: Seconds to wait after each of the two signals.

    Returns:
        Whether the process has ended.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            send(number)
        deadline = time.monotonic() + timeout
        while is_running():
            if time.monotonic() > deadline:
                break
            time.sleep(POLL_SECONDS)
        else:
            return True
    return False
