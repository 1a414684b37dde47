"""Describe what this process is waiting for, such as replies of a server, so that a slow run is not a silent one."""

import time
import weakref
from collections.abc import Callable
from threading import Lock


class ServerActivity:
    """The activity of one server or group of replicas for this process. May be used from several threads.

    Args:
        name: Name of the server for people.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = Lock()
        self._started: dict[int, float] = {}
        self._sent = 0
        self._down: dict[str, float] = {}
        self._timeouts = 0
        self._cut_off: list[int] = []
        _ACTIVITIES.add(self)

    def start_request(self) -> Callable[[], None]:
        """Count a request that was sent, and return a function that ends it."""
        with self._lock:
            self._sent += 1
            number = self._sent
            self._started[number] = time.monotonic()

        def end() -> None:
            with self._lock:
                self._started.pop(number, None)

        return end

    def count_timeout(self) -> None:
        """Count a request that was not answered in time."""
        with self._lock:
            self._timeouts += 1

    def count_cut_off(self, tokens: int) -> None:
        """Count a reply that was cut off at a number of tokens."""
        with self._lock:
            self._cut_off.append(tokens)

    def mark_down(self, url: str) -> None:
        """Remember since when a replica cannot be reached."""
        with self._lock:
            self._down.setdefault(url, time.monotonic())

    def mark_up(self, url: str) -> None:
        """Forget that a replica could not be reached."""
        with self._lock:
            self._down.pop(url, None)

    def describe(self, now: float | None = None) -> str | None:
        """Return one line about the server; None if nothing is waiting for it and nothing went wrong.

        Args:
            now: Time by `time.monotonic`; None for the current time.
        """
        now = time.monotonic() if now is None else now
        with self._lock:
            parts = [f"{url} is down for {now - since:.0f} s" for url, since in self._down.items()]
            if self._started:
                oldest = now - min(self._started.values())
                parts.append(f"waiting for {_count(len(self._started), 'reply', 'replies')}, {oldest:.0f} s so far")
            if self._timeouts:
                parts.append(_count(self._timeouts, "timeout", "timeouts"))
            if self._cut_off:
                parts.append(describe_cut_off(len(self._cut_off), min(self._cut_off), max(self._cut_off)))
        return f"{self._name}: {'; '.join(parts)}" if parts else None


def describe_cut_off(count: int, fewest: int, most: int) -> str:
    """Return how many replies were cut off, and at how many tokens.

    >>> describe_cut_off(5, 412, 412), describe_cut_off(2, 130, 412)
    ('5 replies cut off at 412 tokens', '2 replies cut off at 130 to 412 tokens')
    """
    tokens = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
    return f"{_count(count, 'reply', 'replies')} cut off at {tokens} tokens"


def describe_activities() -> list[str]:
    """Return a line about each server that the process is waiting for, or that did something remarkable."""
    return [line for activity in tuple(_ACTIVITIES) if (line := activity.describe()) is not None]


def _count(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


_ACTIVITIES: "weakref.WeakSet[ServerActivity]" = weakref.WeakSet()
