"""Parse and format ages and sizes."""

import re

from metric_core.errors import ConfigError

_DAYS = {"h": 1 / 24, "d": 1.0, "w": 7.0}
_BYTES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_AGE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([hdw])\s*", re.IGNORECASE)
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)B?\s*", re.IGNORECASE)


def parse_days(text: str) -> float:
    """Parse an age, and return it in days.

    Raises:
        ConfigError: The text is not a number of hours, days or weeks.

    >>> parse_days("12h"), parse_days("30d"), parse_days("2w")
    (0.5, 30.0, 14.0)
    """
    found = _AGE.fullmatch(text)
    if found is None:
        raise ConfigError(f"an age must be a number with h, d or w, such as 30d; got {text!r}")
    return float(found[1]) * _DAYS[found[2].lower()]


def parse_size(text: str) -> int:
    """Parse a size, and return it in bytes.

    Raises:
        ConfigError: The text is not a number of bytes, KB, MB, GB or TB.

    >>> parse_size("5GB"), parse_size("1.5 MB"), parse_size("200")
    (5000000000, 1500000, 200)
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ConfigError(f"a size must be a number with KB, MB, GB or TB, such as 5GB; got {text!r}")
    return int(float(found[1]) * _BYTES[found[2].upper()])


def format_size(count: int) -> str:
    """Format a number of bytes with a unit.

    >>> format_size(999), format_size(1_500_000)
    ('999 B', '1.5 MB')
    """
    for unit in ("T", "G", "M", "K"):
        if count >= _BYTES[unit]:
            return f"{count / _BYTES[unit]:.1f} {unit}B"
    return f"{count} B"
