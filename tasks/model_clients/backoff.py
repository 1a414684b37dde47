"""How long to wait before a request is sent again."""

import random
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?")  # whole ones by the standard, but not by all servers
FIRST, LONGEST = 0.5, 30.0
LONGEST_ASKED_FOR = 120.0
"""Seconds. A server that asks for a longer pause is asked again after this one."""


def backoff_seconds(attempt: int, retry_after: float | None, random_number: float) -> float:
    """Seconds to wait: doubling, half of it by chance so that clients do not come back in step, never too soon.

    Args:
        attempt: how often the request was sent, from 1.
        retry_after: seconds that the server asked for.
        random_number: in [0, 1).

    >>> backoff_seconds(3, None, 0.5)
    1.5
    >>> backoff_seconds(1, 7.0, 0.0)
    7.0
    """
    longest = min(FIRST * 2.0 ** (attempt - 1), LONGEST)
    own = longest / 2 * (1 + random_number)
    return max(own, min(retry_after or 0.0, LONGEST_ASKED_FOR))


def jittered_backoff_seconds(attempt: int, retry_after: float | None) -> float:
    """Seconds to wait, with chance."""
    return backoff_seconds(attempt, retry_after, random.random())  # noqa: S311 spreads load, hides nothing


def retry_after_seconds(header: str | None, now: datetime | None = None) -> float | None:
    """What a `Retry-After` header asks for: seconds, or the time until a date. None: nothing that can be read.

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
