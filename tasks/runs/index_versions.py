"""Order the versions of an index.

Index builders number their versions differently. Two numbers (`7`, `v1.10.2`) or two times (`2026-11-21`,
`20261121T0600Z`) are compared; of any other two versions, the one announced later is newer.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import TypeAlias

_NUMBER = re.compile(r"v?(\d+(?:\.\d+)*)", re.IGNORECASE)
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}.*|\d{8}T.*")

Value: TypeAlias = tuple[int, ...] | datetime


@dataclass(frozen=True, slots=True)
class IndexVersion:
    """A version of an index.

    Args:
        name: Name of the version, as its builder calls it.
        announced: Time of the announcement, with a time zone.
    """

    name: str
    announced: datetime

    @property
    def value(self) -> Value | None:
        """The number or time in the name; None if it has neither.

        >>> now = datetime(2026, 11, 21, tzinfo=UTC)
        >>> [IndexVersion(name, now).value for name in ("v1.10.0", "2026-11-21", "blue")]
        [(1, 10), datetime.datetime(2026, 11, 21, 0, 0, tzinfo=datetime.timezone.utc), None]
        """
        number = _NUMBER.fullmatch(self.name)
        if number is not None:
            return _strip_zeros(tuple(map(int, number[1].split("."))))
        if _TIME.fullmatch(self.name) is None:
            return None
        try:
            time = datetime.fromisoformat(self.name)
        except ValueError:
            return None
        return time if time.tzinfo is not None else time.replace(tzinfo=UTC)

    def is_newer_than(self, other: "IndexVersion") -> bool:
        """Return whether this version is newer: by number or time if both names have one, else by the announcement.

        >>> early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
        >>> IndexVersion("10", early).is_newer_than(IndexVersion("9", late))
        True
        >>> IndexVersion("blue", early).is_newer_than(IndexVersion("9", late))
        False
        """
        mine, theirs = self.value, other.value
        if isinstance(mine, tuple) and isinstance(theirs, tuple) and mine != theirs:
            return mine > theirs
        if isinstance(mine, datetime) and isinstance(theirs, datetime) and mine != theirs:
            return mine > theirs
        return self.announced > other.announced


def newest(versions: Iterable[IndexVersion]) -> IndexVersion | None:
    """Return the newest version, each compared with the newest announced before it; None without versions.

    >>> day = datetime(2026, 1, 1, tzinfo=UTC)
    >>> newest([IndexVersion("9", day), IndexVersion("10", day), IndexVersion("2", day)]).name
    '10'
    """
    ordered = sorted(versions, key=lambda version: version.announced)
    if not ordered:
        return None
    return reduce(lambda best, version: version if version.is_newer_than(best) else best, ordered)


def _strip_zeros(number: tuple[int, ...]) -> tuple[int, ...]:
    """Return a version number without trailing zeros, so that 1.2.0 equals 1.2."""
    while len(number) > 1 and number[-1] == 0:
        number = number[:-1]
    return number
