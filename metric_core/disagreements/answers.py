"""Tell which of two statements that disagree an answer follows, and which of them is older."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from typing import TypeAlias

from metric_core.disagreements.alignment import Difference, align
from metric_core.disagreements.conflicts import Disagreement, Said
from metric_core.disagreements.statements import Statement, split_statements
from metric_core.disagreements.values import DATE, agree, find_values

_LEAST_ALIKE = 0.5
"""Least share of common words of an answer and a statement whose yes or no it may follow."""

Age: TypeAlias = tuple[str, tuple[float, ...]]
"""Kind, date or version, and its numbers, the largest part first. Only those of one kind are compared."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The statements that an answer follows, of two that disagree: one, the other, both, or none."""

    one: bool
    other: bool


def find_taken(answer: str, disagreement: Disagreement) -> Taken:
    """Return which of two statements an answer follows.

    >>> from metric_core.disagreements.conflicts import find_disagreements
    >>> found = find_disagreements(["Camera footage is kept for 72 hours.", "Camera footage is kept for two days."])
    >>> find_taken("It is kept for three days.", found[0])
    Taken(one=True, other=False)
    """
    statements = split_statements(answer)
    if disagreement.difference is Difference.POLARITY:
        return _follow(statements, disagreement)
    has = _has_value if disagreement.difference is Difference.VALUE else _has_name
    return Taken(has(answer, disagreement.one), has(answer, disagreement.other))


def age_of(text: str) -> Age | None:
    """Return what a date or version tells of an age; None if it tells nothing.

    >>> age_of("2024-03-31") < age_of("1 April 2024"), age_of("v2.9") < age_of("v2.10"), age_of("new")
    (True, True, None)
    """
    plain = text.strip()
    numbers = plain.lower().removeprefix("version").strip().removeprefix("v").split(".")
    if all(number.isdecimal() for number in numbers):
        return "version", tuple(map(float, numbers))
    try:
        moment = datetime.fromisoformat(plain)
    except ValueError:
        dates = [value.readings[0] for value in find_values(plain) if value.kind == DATE and len(value.readings) == 1]
        known = [tuple(part or 0.0 for part in date) for date in dates if date[0] is not None]
        return (DATE, (*known[0], 0.0)) if len(known) == 1 else None
    moment = moment if moment.tzinfo is None else moment.astimezone(UTC)
    seconds = moment.hour * 3600 + moment.minute * 60 + moment.second
    return DATE, (float(moment.year), float(moment.month), float(moment.day), float(seconds))


def find_older(disagreement: Disagreement, ages: Sequence[Age | None]) -> Said | None:
    """Return the statement whose passage is older; None if that is not known.

    Args:
        ages: Age of each passage.
    """
    (one, other) = (ages[said.passage] for said in (disagreement.one, disagreement.other))
    if one is None or other is None or one[0] != other[0] or one == other:
        return None
    return disagreement.one if one < other else disagreement.other


def _has_value(answer: str, said: Said) -> bool:
    return any(agree(*pair) for pair in product(find_values(answer), find_values(said.part)))


def _has_name(answer: str, said: Said) -> bool:
    return {*said.part.split()} <= {
        *re.findall(r"\w+(?:[-']\w+)*", answer.lower().replace(".", "").replace("'s ", " "))
    }


def _follow(statements: Sequence[Statement], disagreement: Disagreement) -> Taken:
    """Return which of two statements that say yes and no an answer repeats."""
    sides = [split_statements(said.statement)[:1] for said in (disagreement.one, disagreement.other)]
    found = [[align(each, side) for each in statements for side in sides_of] for sides_of in sides]
    near = [[each for each in alignments if each.alike >= _LEAST_ALIKE] for alignments in found]
    repeats = [any(each.difference is not Difference.POLARITY for each in alignments) for alignments in near]
    denies = [any(each.difference is Difference.POLARITY for each in alignments) for alignments in near]
    return Taken(repeats[0] and not denies[0], repeats[1] and not denies[1])
