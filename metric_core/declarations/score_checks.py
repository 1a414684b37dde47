"""Check scores against the declarations of their metric."""

import math
from collections.abc import Collection
from typing import Any

from metric_core import reasons
from metric_core.records import Score, Status

_ROUNDING = 1e-9
"""Distance from a bound that counts as rounding: a mean of ones may exceed 1 by one unit in the last place."""

JUDGE_FAILURES = frozenset(
    {reasons.NO_USABLE_VERDICT, reasons.NO_USABLE_RATING, reasons.NO_USABLE_REPLY, reasons.NO_USABLE_VECTOR}
)
"""Reasons of failed cells that every metric may give."""


def score_problem(
    score: Any, bounds: tuple[float, float] | None, undefined: Collection[str], failed: Collection[str]
) -> str | None:
    """Return what is wrong with the result of a formula; None if it is a valid score.

    Args:
        bounds: Least and greatest value; None if there is no declared range.
        undefined: Reasons of undefined cells that the metric declares.
        failed: Reasons of failed cells that the metric declares.

    >>> score_problem(Score.scored(1.5), (0.0, 1.0), (), ())
    'returned 1.5, but declares 0 to 1'
    >>> score_problem(Score.undefined("no mood"), None, ("no claims",), ())
    "returned the reason 'no mood' of an undefined cell, which it does not declare; declared are: 'no claims'"
    """
    if not isinstance(score, Score):
        return f"returned {score!r}, wanted a Score"
    status: object = score.status
    if not isinstance(status, Status):
        return f"returned the status {status!r}, wanted a metric_core.records.Status"
    if score.status is Status.SCORED:
        return _value_problem(score, bounds)
    if score.value is not None or score.label is not None:
        return f"returned {score!r}, wanted no value in an undefined or failed cell"
    allowed = undefined if score.status is Status.UNDEFINED else {*JUDGE_FAILURES, *failed}
    if score.reason in allowed:
        return None
    a_cell = "an undefined cell" if score.status is Status.UNDEFINED else "a failed cell"
    declared = ", ".join(sorted(map(repr, allowed))) or "none"
    return f"returned the reason {score.reason!r} of {a_cell}, which it does not declare; declared are: {declared}"


def _value_problem(score: Score, bounds: tuple[float, float] | None) -> str | None:
    value = score.value
    if score.reason is not None:
        return f"returned {score!r}, wanted no reason in a scored cell"
    if not isinstance(score.label, str | None) or (value is None and score.label is None):
        return f"returned {score!r}, wanted a number, or a label as a text"
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return f"returned the value {value!r}, wanted a finite number"
    if bounds is not None and not bounds[0] - _ROUNDING <= value <= bounds[1] + _ROUNDING:
        return f"returned {value:g}, but declares {bounds[0]:g} to {bounds[1]:g}"
    return None
