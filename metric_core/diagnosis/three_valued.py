"""Combine facts that are true, false, or unknown."""

from collections.abc import Iterable
from typing import TypeAlias

Fact: TypeAlias = bool | None
"""True, false, or None if unknown."""


def any_fact(facts: Iterable[Fact]) -> Fact:
    """Return whether any fact is true; unknown if none is and one is unknown.

    >>> any_fact([False, None]), any_fact([True, None]), any_fact([])
    (None, True, False)
    """
    known = list(facts)
    return True if True in known else None if None in known else False


def both(first: Fact, second: Fact) -> Fact:
    """Return whether both facts are true; unknown if neither is false and one is unknown.

    >>> both(True, None), both(False, None), both(True, True)
    (None, False, True)
    """
    if first is False or second is False:
        return False
    return None if first is None or second is None else True


def negate(fact: Fact) -> Fact:
    """Return the opposite of a fact; an unknown one stays unknown.

    >>> negate(True), negate(None)
    (False, None)
    """
    return None if fact is None else not fact


def any_known(facts: Iterable[Fact]) -> bool:
    """Return whether any fact is known.

    >>> any_known([None, False]), any_known([None])
    (True, False)
    """
    return any(fact is not None for fact in facts)
