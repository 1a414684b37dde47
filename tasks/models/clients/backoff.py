"""Decide how long to wait before a request is sent again."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from tasks.runtime.retry import Backoff

_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?")  # the standard has whole seconds only, but some servers send fractions
FIRST, LONGEST = 0.5, 30.0
LONGEST_ASKED_FOR = 120.0
"""Longest pause that a server can ask for, in seconds."""


def backoff_seconds(attempt: int, retry_after: float | None, random_number: float | None = None) -> float:
    """Return the seconds to wait: doubling per attempt, half of it random, and at least what the server asked for.

    Args:
        attempt: Number of times that the request was sent, from 1.
        retry_after: Seconds that the server asked for, if any.
        random_number: Number in [0, 1); None draws one.

    >>> backoff_seconds(3, None, 0.5)
    1.5
    >>> backoff_seconds(1, 7.0, 0.0)
    7.0
    """
    pause = Backoff(FIRST, LONGEST, jitter=0.5).seconds(attempt, random_number)
    return max(pause, min(retry_after or 0.0, LONGEST_ASKED_FOR))


def retry_after_seconds(header: str | None, now: datetime | None = None) -> float | None:
    """Return the seconds that a `Retry-After` header asks for; None if it cannot be parsed.

    Args:
        header: Value of the header, seconds or a date; None if there is none.
        now: Current time, from which a date is counted.

    >>> retry_after_seconds("3")
    3.0
    >>> noon = datetime(2026, 1, 5, 12, 0, 0, tzinfo=UTC)
    >>> retry_after_seconds("Mon, 05 Jan 2026 12:00:20 GMT", noon)
    20.0
    >>> retry_after_seconds("soon") is None
    True
    """
    if header is None:
        return None
    text = header.strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - (now or datetime.now(UTC))).total_seconds())
