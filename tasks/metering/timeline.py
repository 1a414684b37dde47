"""Record how busy a server and its client are over time, in intervals of bounded number."""

from collections.abc import Callable
from dataclasses import dataclass, replace

FIRST_WIDTH = 0.25
"""Seconds of an interval at the start of a run."""

MOST_INTERVALS = 2048
"""Number of intervals that are kept; with more, neighbours are merged, and later intervals are twice as long."""


@dataclass(slots=True)
class Interval:
    """A part of a run.

    Args:
        seconds: Its length.
        in_flight: Conversations in flight, integrated over its seconds.
        store: Seconds in which a stage waited for the store.
        cpu: Seconds of CPU time of this process.
        replies: Conversations whose replies arrived.
        prompt_tokens: Prompt tokens of these replies that the server had to compute.
        output_tokens: Tokens that these replies have.
    """

    seconds: float = 0.0
    in_flight: float = 0.0
    store: float = 0.0
    cpu: float = 0.0
    replies: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "Interval") -> "Interval":
        """Return two intervals as one."""
        return Interval(
            self.seconds + other.seconds,
            self.in_flight + other.in_flight,
            self.store + other.store,
            self.cpu + other.cpu,
            self.replies + other.replies,
            self.prompt_tokens + other.prompt_tokens,
            self.output_tokens + other.output_tokens,
        )


class Timeline:
    """The intervals from the first request to a server to its last reply. Not thread-safe: its owner has the lock.

    Args:
        cpu: Returns the CPU time of this process in seconds.
        in_store: Number of stages that wait for the store already.
    """

    def __init__(self, cpu: Callable[[], float], in_store: int = 0) -> None:
        self.width = FIRST_WIDTH
        self._cpu = cpu
        self._closed: list[Interval] = []
        self._open = Interval()
        self._cpu_before = 0.0
        self._last: float | None = None
        self._passed = 0.0
        self._ended = 0.0  # as `_passed`, at the last reply
        self._in_flight = 0
        self._in_store = in_store

    @property
    def seconds(self) -> float:
        """Seconds from the first request to the last reply."""
        return sum(interval.seconds for interval in self.intervals())

    def start_request(self, now: float, conversations: int) -> None:
        """Record that conversations were sent.

        Args:
            now: Time in seconds, on any clock.
            conversations: Number of conversations in the request.
        """
        if self._last is None:
            self._last, self._cpu_before = now, self._cpu()
        self._advance(now)
        self._in_flight += conversations

    def end_request(
        self, now: float, conversations: int, prompt_tokens: int = 0, output_tokens: int = 0, *, is_answered: bool
    ) -> None:
        """Record that the reply to a request arrived, or that none will.

        Args:
            now: Time in seconds.
            conversations: Number of conversations in the request.
            prompt_tokens: Prompt tokens that the server had to compute.
            output_tokens: Tokens of the reply.
            is_answered: True if a reply arrived.
        """
        self._advance(now)
        self._in_flight -= conversations
        self._open.prompt_tokens += prompt_tokens
        self._open.output_tokens += output_tokens
        self._open.replies += conversations if is_answered else 0
        self._ended = self._passed

    def wait_for_store(self, now: float, change: int) -> None:
        """Record that a stage begins (1) or ends (-1) to wait for the store."""
        self._advance(now)
        self._in_store += change

    def intervals(self) -> list[Interval]:
        """Return the intervals, in their order; time after the last reply does not count."""
        kept: list[Interval] = []
        left = self._ended
        for interval in (*self._closed, replace(self._open, cpu=self._cpu() - self._cpu_before)):
            if interval.seconds <= left:
                kept.append(interval)
                left -= interval.seconds
                continue
            share = left / interval.seconds  # nothing was in flight, and no reply arrived, after that
            kept.append(replace(interval, seconds=left, store=interval.store * share, cpu=interval.cpu * share))
            break
        return [interval for interval in kept if interval.seconds or interval.replies]

    def _advance(self, now: float) -> None:
        if self._last is None:
            return
        passed, self._last = now - self._last, now
        self._passed += passed
        interval = self._open
        interval.seconds += passed
        interval.in_flight += self._in_flight * passed
        interval.store += passed if self._in_store else 0.0
        if interval.seconds >= self.width:
            self._close()

    def _close(self) -> None:
        cpu = self._cpu()
        self._open.cpu, self._cpu_before = cpu - self._cpu_before, cpu
        self._closed.append(self._open)
        self._open = Interval()
        if len(self._closed) >= MOST_INTERVALS:
            pairs = zip(self._closed[::2], self._closed[1::2], strict=True)
            self._closed = [earlier + later for earlier, later in pairs]
            self.width *= 2
