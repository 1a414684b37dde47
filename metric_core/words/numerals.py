"""Normalize the spelling of numbers and dates, written in digits or in words."""

import re
from collections.abc import Sequence

from metric_core.words.lexicon import MONTHS, NUMBER_SCALES, NUMBER_WORDS

_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_TENS = frozenset(range(20, 100, 10))
_LONGEST_NUMBER = 12


def spell_digits(units: Sequence[str]) -> list[str]:
    """Return the units of a text with every number, in digits or in words, as one unit of digits.

    >>> spell_digits(["twenty", "five", "days", "and", "1.5", "million", "dollars"])
    ['25', 'days', 'and', '1500000', 'dollars']
    """
    spelled: list[str] = []
    position = 0
    while position < len(units):
        value, used = read_number(units, position)
        spelled.append(f"{value:.15g}" if used else units[position])
        position += used or 1
    return spelled


def read_number(units: Sequence[str], start: int) -> tuple[float, int]:
    """Return the number that starts at a position and its number of units; 0 units if there is none.

    >>> read_number(["two", "thousand", "five", "hundred", "and", "six"], 0)
    (2506.0, 6)
    """
    lower = [unit.lower() for unit in units[start : start + _LONGEST_NUMBER]]
    value = _simple_number(lower)
    if value is None:
        return 0.0, 0
    used = 1
    if value in _TENS and not lower[0].isdecimal() and NUMBER_WORDS.get(lower[1] if len(lower) > 1 else "", 10) < 10:
        value, used = value + NUMBER_WORDS[lower[1]], 2
    scale = 1
    while used < len(lower) and lower[used] in NUMBER_SCALES:
        scale = NUMBER_SCALES[lower[used]]
        value, used = value * scale, used + 1
    rest = used + (lower[used : used + 1] == ["and"])
    if scale > 1 and rest < len(lower) and lower[rest] in NUMBER_WORDS:
        more, taken = read_number(units, start + rest)
        if more < scale:
            return value + more, rest + taken
    return value, used


def _simple_number(lower: Sequence[str]) -> float | None:
    word, following = lower[0], lower[1] if len(lower) > 1 else ""
    # Some scripts have numeric characters that are digits to Python but not decimal.
    if word[0].isdecimal():
        plain = word.replace(",", "") if _THOUSANDS.fullmatch(word) else word.replace(",", ".")
        # Several dots (a version, a date) do not form a number: only the digits count.
        return float(plain) if plain.count(".") <= 1 else float(plain.replace(".", ""))
    if word in {"a", "one"} and following in NUMBER_SCALES:
        return 1.0
    return float(NUMBER_WORDS[word]) if word in NUMBER_WORDS else None


def put_months_first(units: Sequence[str]) -> list[str]:
    """Return the units of a text with normalized months, placed before the day of a date.

    >>> put_months_first(["5", "Sept", "2024"]), put_months_first(["May", "we", "go"])
    (['month-september', '5', '2024'], ['May', 'we', 'go'])
    """
    reordered = list(units)
    for position, unit in enumerate(reordered):
        around = reordered[max(position - 1, 0) : position + 2]
        month = MONTHS.get(unit[:3].lower()) if unit[0].isupper() else None
        dated = any(neighbor[0].isdecimal() for neighbor in around)
        if month is None or unit.lower() not in {month, month[:3], "sept"} or (len(unit) <= 4 and not dated):
            continue
        reordered[position] = f"month-{month}"
        if position and _is_day(reordered[position - 1]):
            reordered[position - 1 : position + 1] = [reordered[position], reordered[position - 1]]
    return reordered


def _is_day(unit: str) -> bool:
    return unit.isdecimal() and 1 <= int(unit) <= 31
