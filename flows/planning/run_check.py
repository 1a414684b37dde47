"""Define a check before a run."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunCheck:
    """A check of something that a run or a deployment needs.

    Args:
        check: Returns a description of what was found, or raises an AssayError.
    """

    name: str
    check: Callable[[], str]
    advice: str
