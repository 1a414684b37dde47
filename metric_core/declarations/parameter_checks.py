"""Check the values of parameters of metrics: each function returns what is wanted of a value that it rejects."""

import math
import sys
from collections.abc import Callable
from typing import Any


def require_number_in(least: float, greatest: float = math.inf) -> Callable[[Any], str | None]:
    """Return a validator that accepts finite numbers from `least` to `greatest`.

    >>> require_number_in(0, 1)(1.5)
    'a number from 0 to 1'
    """

    def check(value: Any) -> str | None:
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
        if is_number and least <= value <= greatest:
            return None
        return f"a number of at least {least:g}" if greatest == math.inf else f"a number from {least:g} to {greatest:g}"

    return check


def require_positive_integer(value: Any) -> str | None:
    """Accept whole numbers of at least 1.

    >>> require_positive_integer(0)
    'a whole number of at least 1'
    """
    is_valid = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    return None if is_valid else "a whole number of at least 1"


def require_text(value: Any) -> str | None:
    """Accept texts that are not blank.

    >>> require_text(" ")
    'a text that is not empty'
    """
    return None if isinstance(value, str) and value.strip() else "a text that is not empty"


def allow_none(check: Callable[[Any], str | None]) -> Callable[[Any], str | None]:
    """Return a validator that accepts None and everything that `check` accepts.

    >>> allow_none(require_positive_integer)(None) is None
    True
    >>> allow_none(require_positive_integer)(0)
    'a whole number of at least 1 or nothing'
    """

    def check_or_none(value: Any) -> str | None:
        wanted = None if value is None else check(value)
        return None if wanted is None else f"{wanted} or nothing"

    return check_or_none
