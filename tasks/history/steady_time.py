"""Determine how much time has passed for an evaluation, without trusting a single reading of the clock."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

_LEAST = timedelta(days=3)
_GAPS = 3
"""Number of the longest gaps between earlier runs that may pass before a run."""


def steady_time(now: datetime, starts: Sequence[datetime]) -> datetime:
    """Return the time by which it is decided that something has lasted too long, or is over.

    It is the present time, unless so much has passed since the last run that the clock may be ahead: then it is three
    times the longest gap between earlier runs after that run, and three days at least. After a long pause such a
    decision therefore needs a second run, which one night with a wrong clock is not.

    Args:
        now: Present time by the clock.
        starts: Starts of the runs before, in any order; those after the present time are left out.

    >>> start = datetime(2026, 11, 16, 6)
    >>> nights = [start + timedelta(days=night) for night in range(3)]
    >>> [steady_time(start + timedelta(days=days), nights).isoformat() for days in (3, 99)]
    ['2026-11-19T06:00:00', '2026-11-21T06:00:00']
    """
    past = sorted(each for each in starts if each <= now)
    if len(past) < 2:
        return now
    longest = max(after - before for before, after in pairwise(past))
    return min(now, past[-1] + max(_LEAST, _GAPS * longest))
