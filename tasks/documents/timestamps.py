"""Format timestamps for readers."""

from datetime import datetime
from typing import Any


def format_timestamp(created: Any) -> str:
    """Return an ISO 8601 time in words; anything else unchanged.

    >>> format_timestamp("2026-11-21T15:59:46+00:00"), format_timestamp(None)
    ('21 November 2026, 15:59 UTC', 'None')
    """
    try:
        moment = datetime.fromisoformat(created)
    except (TypeError, ValueError):
        return str(created)
    return f"{moment.day} {moment:%B %Y, %H:%M} {moment.tzname() or ''}".strip()
