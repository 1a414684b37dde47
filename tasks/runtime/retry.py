"""Repeat work that fails for a transient reason."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

T = TypeVar("T")

PauseAfter: TypeAlias = Callable[[Exception, int], float | None]
"""Called with an error and the number of the attempt that raised it, from 1.

Returns the seconds to wait before the next attempt; None gives up.
"""

_LARGEST_EXPONENT = 64


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses between attempts that grow up to a limit.

    Args:
        first: Longest pause after the first attempt, in seconds.
        longest: Limit of the pauses, in seconds.
        factor: Factor by which the pause grows with every attempt.
        jitter: Share of the pause that is random, in [0, 1], so that clients do not return in step.
    """

    first: float
    longest: float
    factor: float = 2.0
    jitter: float = 0.0

    def seconds(self, attempt: int, random_number: float | None = None) -> float:
        """Return the seconds to wait after an attempt.

        Args:
            attempt: Number of the attempt, from 1.
            random_number: Number in [0, 1); None draws one.

        >>> [Backoff(0.2, 1.0).seconds(attempt) for attempt in (1, 2, 3, 4)]
        [0.2, 0.4, 0.8, 1.0]
        >>> Backoff(0.5, 30.0, jitter=0.5).seconds(3, 0.5)
        1.5
        """
        pause = min(self.longest, self.first * float(self.factor ** min(attempt - 1, _LARGEST_EXPONENT)))
        number = random.random() if random_number is None else random_number  # noqa: S311 spreads load
        return pause * (1.0 - self.jitter * (1.0 - number))


def retry(work: Callable[[], T], pause_after: PauseAfter, sleep: Callable[[float], object] = time.sleep) -> T:
    """Call a function until it returns, and return what it returned.

    Args:
        pause_after: Decides after each error whether to go on, and how long to wait.

    Raises:
        Exception: The error of the last attempt.

    >>> replies = iter([ConnectionError("busy"), "at last"])
    >>> def ask():
    ...     reply = next(replies)
    ...     if isinstance(reply, Exception):
    ...         raise reply
    ...     return reply
    >>> retry(ask, lambda error, attempt: 0.0 if attempt < 3 else None)
    'at last'
    """
    attempt = 1
    while True:
        try:
            return work()
        except Exception as error:
            pause = pause_after(error, attempt)
            if pause is None:
                raise
        sleep(pause)
        attempt += 1


async def retry_async(work: Callable[[], Awaitable[T]], pause_after: PauseAfter) -> T:
    """Await a function until it returns, and return what it returned; see `retry`.

    Args:
        pause_after: Decides after each error whether to go on, and how long to wait.

    Raises:
        Exception: The error of the last attempt.
    """
    attempt = 1
    while True:
        try:
            return await work()
        except Exception as error:
            pause = pause_after(error, attempt)
            if pause is None:
                raise
        await asyncio.sleep(pause)
        attempt += 1
