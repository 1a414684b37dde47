"""Find numbers, amounts, shares, durations, dates and times in texts, and compare them whatever their form."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from metric_core.disagreements.units import ABOUT, DAY, DURATION, IN_TIME, LABELS, MONEY, MONTH, SCALES, SHARE, UNITS
from metric_core.words.lexicon import MONTHS, NUMBER_SCALES, NUMBER_WORDS
from metric_core.words.numerals import read_number

DATE, TIME, NUMBER = "date", "time of day", "number"

Reading: TypeAlias = tuple[float | None, ...]
"""Year, month and day of a date, each None if it is not said; the two ends of any other value, which may be equal."""

_EXACT, _IN_OTHER_UNITS, _IN_MONTHS, _ROUNDED = 1e-6, 0.03, 0.1, 0.05
"""Greatest relative difference of equal values; months have 28 to 31 days."""
_LARGE = frozenset(SCALES) - NUMBER_SCALES.keys() | {"million", "billion"}
"""Scales whose numbers have few digits, so that a number in full may be the same."""

_MONTH = "|".join(f"{name}|{name[:3]}" for name in map(str.capitalize, MONTHS.values())) + "|Sept"
_YEAR, _DAY = r"(?:1[5-9]|20)\d\d", r"(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?"
_WORD, _SCALE = "|".join((*NUMBER_WORDS, "one", "half")), "|".join(NUMBER_SCALES)
_SPELLED = rf"\b(?:(?:{_WORD})(?:[ -](?:{_WORD}|(?:{_SCALE})(?:\ and(?=\ (?:{_WORD})\b))?))*|a\ (?:{_SCALE}))\b"
_DIGITS = r"(?>\d{1,3}(?:[,\u00a0\u202f\u2009\ ]\d{3})+(?!\d)(?:\.\d+)?|\d+(?:[.,]\d+)?)(?![.]?\d)"
_NAMES = "|".join(sorted((re.escape(name) for name in UNITS if name[0].isalpha()), key=len, reverse=True))
_VALUE = re.compile(
    rf"""(?ix)(?<![\w@\#/.])(?<![a-z]-)(?:
    (?P<iso>\d{{4}}-\d\d-\d\d)\b
    |(?P<slashed>\d{{1,2}}([/.])\d{{1,2}}\3(?:\d{{4}}|\d\d)|\d\d/\d\d)\b
    |(?P<day>{_DAY})\s(?:of\s)?(?-i:(?P<month>{_MONTH}))\b\.?(?:,?\s(?P<year>{_YEAR})\b)?
    |(?-i:(?P<month2>{_MONTH}))\b\.?\s(?P<day2>{_DAY})\b(?![:%])(?:,?\s(?P<year2>{_YEAR})\b)?
    |(?-i:(?P<month3>{_MONTH}))\b\.?,?\s(?P<year3>{_YEAR})\b
    |(?-i:(?P<month4>{_MONTH}))\b
    |(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)\b(?:\s?(?P<half>[ap])\.?m\b)?
    |(?P<hour2>1[0-2]|0?[1-9])\s?(?P<half2>[ap])\.?m\b
    |(?P<named>noon|midday|midnight)\b
    |(?P<sign>[$€£¥])?\s?(?P<low>{_DIGITS}|{_SPELLED})(?:\s?(?P<scale>(?:{_SCALE}|k|mn?|bn?)\b))?
     (?:\s?(?:-|\u2013|\u2014|to)\s?[$€£¥]?(?P<high>{_DIGITS}|{_SPELLED})(?:\s(?P<scale2>{_SCALE})\b)?)?
     (?:[\s-]?(?:an?\s)?(?P<between>(?:working|business|calendar|full|more|additional|us)\s)?
       (?P<unit>(?:{_NAMES})s?\b|[%€$£¥](?!\s?\d)))?
    )"""
)
_BEFORE = re.compile(r"(\w+|[^\w\s])\s?$")
_REACH = 20


@dataclass(frozen=True, slots=True)
class Value:
    """A value that a text gives.

    Args:
        kind: Quantity that is measured: values of two kinds are not compared, but for numbers without a unit.
        readings: Possible meanings; several for a form that is read differently in different places, such as 12/05.
        start: Position of its first character in the text.
        end: Position after its last character.
        unit: Size of its unit; 0 without one.
        is_rounded: True if the text says that it is not exact.
    """

    kind: str
    readings: tuple[Reading, ...]
    start: int = 0
    end: int = 0
    unit: float = 0.0
    is_rounded: bool = False


def find_values(text: str) -> Iterator[Value]:
    """Yield the values of a text, in their order. A number that names a thing, as in "step 2", is none.

    >>> [(value.kind, value.readings) for value in find_values("1 000 users pay €2.5 million by 3 May.")]
    [('number', ((1000.0, 1000.0),)), ('euros', ((2500000.0, 2500000.0),)), ('date', ((None, 5.0, 3.0),))]
    """
    for found in _VALUE.finditer(text):
        before = _BEFORE.search(text, max(found.start() - _REACH, 0), found.start())
        value = _read(found, before[1].lower() if before else "")
        if value is not None:
            yield value


def agree(one: Value, other: Value) -> bool | None:
    """Return whether two values may be the same; None if they cannot be compared.

    >>> def compare(one, other):
    ...     return agree(next(find_values(one)), next(find_values(other)))
    >>> compare("72 hours", "3 days"), compare("1,000", "one thousand"), compare("12/05/2024", "5 Dec 2024")
    (True, True, True)
    >>> compare("27 days", "30 days"), compare("€45", "$45"), compare("5 pm", "17:30")
    (False, None, False)
    """
    kinds = {one.kind, other.kind}
    if kinds == {NUMBER, SHARE}:
        share, number = (one, other) if one.kind == SHARE else (other, one)
        return True if _are_equal(share, number) or _are_equal(share, number, 100) else None
    if len(kinds) > 1 and not (NUMBER in kinds and kinds & MONEY):
        return None
    if one.kind == DATE:
        known = [_same_date(*pair) for pair in product(one.readings, other.readings)]
        return True if True in known else None if None in known else False
    return _are_equal(one, other)


def _are_equal(one: Value, other: Value, times: float = 1) -> bool:
    """Return whether two values may be the same number, the second one multiplied."""
    small, large = sorted((one.unit, other.unit))
    tolerance = _EXACT if small == large or not small else _IN_OTHER_UNITS
    if one.kind == other.kind == DURATION and small <= 7 * DAY < MONTH <= large:
        tolerance = _IN_MONTHS
    if one.is_rounded is not other.is_rounded:
        tolerance = max(tolerance, _ROUNDED)
    pairs = product(one.readings, other.readings)
    return any(_overlap(a, tuple((end or 0.0) * times for end in b), tolerance) for a, b in pairs)


def _overlap(one: Reading, other: Reading, tolerance: float) -> bool:
    (a, b), (c, d) = ((low or 0.0, high or 0.0) for low, high in (one, other))
    if a < b and c < d:
        return _near(a, c, tolerance) and _near(b, d, tolerance)
    return (a <= d or _near(a, d, tolerance)) and (c <= b or _near(c, b, tolerance))


def _near(one: float, other: float, tolerance: float) -> bool:
    return abs(one - other) <= tolerance * max(abs(one), abs(other))


def _same_date(one: Reading, other: Reading) -> bool | None:
    both = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    return all(a == b for a, b in both) if both else None


def _read(found: re.Match[str], before: str) -> Value | None:
    if found["low"]:
        return _quantity(found, before)
    if found["hour"] or found["hour2"] or found["named"]:
        return _time(found)
    readings = _dates(found, before)
    return Value(DATE, readings, found.start(), found.end()) if readings else None


def _dates(found: re.Match[str], before: str) -> tuple[Reading, ...]:
    if found["iso"]:
        return (tuple(map(float, found["iso"].split("-"))),)
    if found["slashed"]:
        first, second, *rest = map(float, re.split("[/.]", found["slashed"]))
        year = rest[0] + 2000 * (rest[0] < 100) if rest else None
        either = sorted({(second, first), (first, second)})
        return tuple((year, month, day) for month, day in either if 1 <= month <= 12 and 1 <= day <= 31)
    if found["month4"] and before not in IN_TIME:
        return ()  # "May we", "March on"
    month = next(found[name] for name in ("month", "month2", "month3", "month4") if found[name])
    day, said = found["day"] or found["day2"], found["year"] or found["year2"] or found["year3"]
    number = float([*MONTHS].index(month[:3].lower()) + 1)
    return ((float(said) if said else None, number, float(re.sub(r"\D", "", day)) if day else None),)


def _time(found: re.Match[str]) -> Value:
    half = (found["half"] or found["half2"] or "").lower()
    hours = 0 if found["named"] == "midnight" else int(found["hour"] or found["hour2"] or 12)
    # Without "am" or "pm", and without a zero in front, nine may be in the morning or in the evening.
    is_open = not half and not found["named"] and 0 < hours < 12 and found["hour"][0] != "0"
    halves = [half] if half else ["a", "p"] if is_open else []
    at = [hours % 12 + 12 * (each == "p") for each in halves] or [hours % 24]
    minutes = [60.0 * each + int(found["minute"] or 0) for each in at]
    return Value(TIME, tuple((each, each) for each in minutes), found.start(), found.end())


def _quantity(found: re.Match[str], before: str) -> Value | None:
    text, unit = found["low"].lower(), (found["unit"] or "").lower()
    kind, size = UNITS.get(found["sign"] or unit) or UNITS.get(unit.removesuffix("s")) or (NUMBER, 0.0)
    if before in LABELS or (text == "one" and not size):
        return None
    if found["high"] is None and not size and before in IN_TIME and re.fullmatch(_YEAR, text):
        return Value(DATE, ((float(text), None, None),), found.start(), found.end())
    scale = (found["scale"] or "").lower()
    if len(scale) in {1, 2} and not found["sign"]:
        return None  # "5 m", which is a length only behind other words
    lows = [_number(text) * SCALES.get(scale, 1)]
    if re.fullmatch(r"\d{1,3}\.\d{3}", text):
        lows.append(lows[0] * 1000)
    high = _number(found["high"].lower()) * SCALES.get((found["scale2"] or "").lower(), 1) if found["high"] else 0.0
    readings = tuple((low * (size or 1), max(low, high) * (size or 1)) for low in lows)
    if (found["between"] or "").strip().lower() in {"working", "business"}:
        kind = f"working {kind}"
    is_rounded = before in ABOUT or scale in _LARGE or any(word in _LARGE for word in text.split())
    return Value(kind, readings, found.start(), found.end(), size, is_rounded)


def _number(text: str) -> float:
    plain = re.sub(r"(?<=\d)\s(?=\d)", "", text)
    words = re.split(r"[ -]", plain)
    return 0.5 if words[0] == "half" else 1.0 if plain == "one" else read_number(words, 0)[0]
