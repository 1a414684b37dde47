"""Read intervals such as `4h`."""

import re
from datetime import timedelta
from typing import Annotated, TypeAlias

from pydantic import AfterValidator

_INTERVAL = re.compile(r"(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?")
_SHORTEST, _LONGEST = timedelta(minutes=1), timedelta(days=366)


def parse_interval(text: str) -> timedelta:
    """Return the length of an interval.

    Args:
        text: Days, hours and minutes, such as `4h` or `1d12h`.

    Raises:
        ValueError: The text is something else, or the interval is shorter than a minute or longer than 366 days.

    >>> str(parse_interval("1h30m"))
    '1:30:00'
    """
    match = _INTERVAL.fullmatch(text)
    days, hours, minutes = (int(number or 0) for number in match.groups()) if match else (0, 0, 0)
    length = timedelta(days=days, hours=hours, minutes=minutes)
    if not _SHORTEST <= length <= _LONGEST:
        raise ValueError(
            "an interval must be days, hours and minutes, such as 30m, 4h, 1d or 1h30m, between a minute and 366 days, "
            f"got {text!r}"
        )
    return length


def _check_interval(text: str) -> str:
    parse_interval(text)
    return text


Interval: TypeAlias = Annotated[str, AfterValidator(_check_interval)]
"""The text of an interval."""
