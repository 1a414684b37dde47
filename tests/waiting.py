"""Wait in tests for what a program does, with a limit that only a dead program reaches."""

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

DEAD_SECONDS = 900.0
"""Seconds after which a program that has not done what a test waits for is dead, however busy the machine is."""

_LONGEST_PAUSE = 0.25


def wait_until(look: Callable[[], Found | None], what: str = "it to come true") -> Found:
    """Call a function, at growing intervals, until its result is true, and return the result.

    Args:
        look: Function that looks for what is waited for.
        what: Description of it, for the message.

    Raises:
        AssertionError: The result was never true.
    """
    deadline, pause = time.monotonic() + DEAD_SECONDS, 0.01
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
    raise AssertionError(f"waited in vain for {what}")
