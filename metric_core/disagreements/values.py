"""Find numbers, amounts, shares, durations, dates and times in texts, and compare them whatever their form."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from metric_core.disagreements.units import (
    ABOUT,
    BETWEEN,
    CALENDAR,
    DURATION,
    LABELS,
    MONEY,
    SCALES,
    SYMBOLS,
    TO,
    UNITS,
    YEARLY,
)
from metric_core.words.lexicon import MONTHS, NUMBER_WORDS
from metric_core.words.numerals import read_number

DATE, TIME, NUMBER, SHARE = "date", "time of day", "number", "share"

Reading: TypeAlias = tuple[float | None, ...]
"""Year, month and day of a date, each None if it is not said; the two ends of any other value, which may be equal."""

_SPACED = r"\d{1,3}(?:[\u00a0\u202f\u2009 ]\d{3})+(?!\d)"
_TOKEN = re.compile(
    rf"(?P<iso>\b\d{{4}}-\d\d-\d\d\b)|(?P<slashed>\b\d{{1,2}}([/.])\d{{1,2}}\3(?:\d{{4}}|\d\d)\b|\b\d\d/\d\d\b)"
    r"|(?P<clock>\b\d{1,2}:\d\d\b)|(?P<version>\d+(?:\.\d+){2,})"
    rf"|{_SPACED}|\d+(?:[.,]\d+)*|[^\W\d_]+(?:['\u2019.][^\W\d_]+)*|[^\w\s]"
)
_AM_PM = re.compile(r"(?i)([ap])\.?m")
_MOST_DIGITS = 15
_WHOLE, _PART, _LOOSE, _ROUNDED = 1e-6, 0.03, 0.1, 0.05
"""Greatest relative difference of equal values: in the same unit, in other units, in months and days, about a value."""
_FRACTIONS = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "tenth": 10}
_LARGE = frozenset({"million", "billion", *SCALES})
"""Scales whose numbers have few digits, so that a number in full may be the same."""
_NOON = {"noon": 720, "midday": 720, "midnight": 0}


@dataclass(frozen=True, slots=True)
class Word:
    """A word, number or sign of a text, with its place."""

    text: str
    start: int
    end: int
    form: str = ""


@dataclass(frozen=True, slots=True)
class Value:
    """A value that a text gives.

    Args:
        kind: What is measured: values of two kinds are not compared, but for numbers without a unit.
        readings: What it may mean; several for a form that is read differently in different places, such as 12/05.
        first: Index of its first word.
        last: Index of its last word.
        unit: Size of its unit; 0 without one.
        is_rounded: True if the text says that it is not exact.
    """

    kind: str
    readings: tuple[Reading, ...]
    first: int
    last: int
    unit: float = 0.0
    is_rounded: bool = False


def split_words(text: str) -> list[Word]:
    """Return the words, numbers and signs of a text."""
    return [Word(found.group(), found.start(), found.end(), found.lastgroup or "") for found in _TOKEN.finditer(text)]


def find_values(words: Sequence[Word]) -> Iterator[Value]:
    """Yield the values in the words of a text, in their order. A number that names a thing, as in "step 2", is none.

    >>> [(value.kind, value.readings) for value in find_values(split_words("1 000 users pay €2.5 million by 3 May."))]
    [('number', ((1000.0, 1000.0),)), ('euros', ((2500000.0, 2500000.0),)), ('date', ((None, 5, 3.0),))]
    """
    texts = [_plain(word.text) for word in words]
    position = 0
    while position < len(words):
        value = _date(words, texts, position) or _time(words, texts, position) or _quantity(words, texts, position)
        if value is not None:
            yield value
        position = position + 1 if value is None else value.last + 1


def agree(one: Value, other: Value) -> bool | None:
    """Return whether two values may be the same; None if they cannot be compared.

    >>> def compare(one, other):
    ...     return agree(*(next(find_values(split_words(text))) for text in (one, other)))
    >>> compare("72 hours", "3 days"), compare("1,000", "one thousand"), compare("12/05/2024", "5 Dec 2024")
    (True, True, True)
    >>> compare("27 days", "30 days"), compare("€45", "$45"), compare("5 pm", "17:30")
    (False, None, False)
    """
    kinds = {one.kind, other.kind}
    if kinds == {NUMBER, SHARE}:
        share, number = (one, other) if one.kind == SHARE else (other, one)
        return True if agree_numbers(share, number) or agree_numbers(share, number, 100) else None
    if len(kinds) > 1 and not (NUMBER in kinds and kinds & MONEY):
        return None
    if one.kind == DATE:
        known = [_same_date(*pair) for pair in product(one.readings, other.readings)]
        return True if True in known else None if None in known else False
    return agree_numbers(one, other)


def agree_numbers(one: Value, other: Value, times: float = 1) -> bool:
    """Return whether two values may be the same number, the second one multiplied."""
    small, large = sorted((one.unit, other.unit))
    tolerance = _WHOLE if small == large or not small else _PART
    if one.kind == other.kind == DURATION and small < large and large > 7 * CALENDAR >= 7 * small:
        tolerance = _LOOSE  # a month is 28 to 31 days
    if one.is_rounded is not other.is_rounded:
        tolerance = max(tolerance, _ROUNDED)
    return any(
        _overlap(a, tuple((end or 0) * times for end in b), tolerance) for a in one.readings for b in other.readings
    )


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


def _plain(text: str) -> str:
    """Return a word in lower case, and a number without the spaces between its thousands."""
    return re.sub(r"\s", "", text).replace("\u2019", "'").lower()


def _date(words: Sequence[Word], texts: Sequence[str], start: int) -> Value | None:
    word = words[start]
    if word.form == "iso":
        return Value(DATE, (tuple(map(float, word.text.split("-"))),), start, start)
    if word.form == "slashed":
        first, second, *rest = map(int, re.split(r"[/.]", word.text))
        years: list[int | None] = [each + 2000 if each < 100 else each for each in rest] or [None]
        found = sorted({(second, first), (first, second)})
        possible = tuple((years[0], month, day) for month, day in found if 1 <= month <= 12 and 1 <= day <= 31)
        return Value(DATE, possible, start, start) if possible else None
    place = start
    day: float | None = None
    year: float | None = None
    if _is_day(texts, place):
        place += 2 if _at(texts, place + 1) in {"st", "nd", "rd", "th"} else 1
        place += _at(texts, place) == "of"
        day = float(texts[start])
    month = _month(words, texts, place, alone=day is None)
    if month is None:
        return _year(texts, start) if day is None else None
    last = place
    if day is None and _is_day(texts, place + 1) and _at(texts, place + 2) not in {":", "%"}:
        last, day = place + 1, float(texts[place + 1])
        last += _at(texts, last + 1) in {"st", "nd", "rd", "th"}
    after = last + 1 + (_at(texts, last + 1) in {",", "of"})
    year = float(texts[after]) if _is_year(_at(texts, after)) else None
    if day is None and year is None and not words[place].text[0].isupper():
        return None
    return Value(DATE, ((year, month, day),), start, last if year is None else after)


def _month(words: Sequence[Word], texts: Sequence[str], place: int, *, alone: bool) -> int | None:
    text = _at(texts, place).rstrip(".")
    name = MONTHS.get(text[:3])
    if name is None or text not in {name, name[:3], "sept"} or (alone and not words[place].text[0].isupper()):
        return None
    is_dated = _at(texts, place + 1)[:1].isdigit() or _at(texts, place - 1) in YEARLY | {"each", "every"}
    if alone and len(text) <= 5 and not is_dated:
        return None  # "May we", "March on"
    return list(MONTHS).index(name[:3]) + 1


def _year(texts: Sequence[str], start: int) -> Value | None:
    before, after = _at(texts, start - 1), _at(texts, start + 1)
    if not _is_year(texts[start]) or before not in YEARLY or after in {"%", "percent"} or _unit(texts, start + 1)[1]:
        return None
    return Value(DATE, ((float(texts[start]), None, None),), start, start)


def _time(words: Sequence[Word], texts: Sequence[str], start: int) -> Value | None:
    text = texts[start]
    if text in _NOON:
        return Value(TIME, ((_NOON[text], _NOON[text]),), start, start)
    half = _AM_PM.fullmatch(_at(texts, start + 1))
    if words[start].form == "clock":
        hours, minutes = map(int, text.split(":"))
    elif text.isdecimal() and half and int(text) <= 12:
        hours, minutes = int(text), 0
    else:
        return None
    if hours > 24 or minutes > 59:
        return None
    # Without "am" or "pm", and without a zero in front, nine may be in the morning or in the evening.
    halves = [half[1].lower()] if half else ["a", "p"] if 0 < hours < 12 and text[0] != "0" else []
    found = [(hours % 12 + 12 * (each == "p")) * 60 + minutes for each in halves] or [hours % 24 * 60 + minutes]
    return Value(TIME, tuple((float(at), float(at)) for at in found), start, start + bool(half))


def _quantity(words: Sequence[Word], texts: Sequence[str], start: int) -> Value | None:
    found = None if _names_a_thing(words, texts, start) else _number(texts, start)
    if found is None:
        return None
    numbers, last = found
    kind, unit = SYMBOLS.get(_at(texts, start - 1), ("", 0.0))
    if kind and (scale := SCALES.get(_at(texts, last + 1))):
        numbers, last = [number * scale for number in numbers], last + 1
    highs = numbers
    joint = _at(texts, last + 1)
    upper = _number(texts, last + 2 + (_at(texts, last + 2) in SYMBOLS)) if joint in TO else None
    if upper is not None and upper[0][0] > numbers[0] and (joint != "or" or _unit(texts, upper[1] + 1)[1]):
        highs, last = upper
    if not kind:
        kind, unit, used = _unit(texts, last + 1)
        last += used
    if kind != SHARE and _at(texts, last + 1) == "of" and (part := _at(texts, start)) in _FRACTIONS:
        kind, unit, numbers = SHARE, 1.0, [100 / _FRACTIONS[part]]
        highs = numbers
    size = unit or 1.0
    lows = zip(numbers, highs if len(highs) == len(numbers) else numbers, strict=True)
    readings = tuple((low * size, high * size) for low, high in lows)
    before = _at(texts, start - 1 - bool(_at(texts, start - 1) in SYMBOLS))
    is_scaled = any(texts[place] in _LARGE for place in range(start + 1, last + 1))
    return Value(kind or NUMBER, readings, start, last, unit, before in ABOUT or is_scaled)


def _number(texts: Sequence[str], start: int) -> tuple[list[float], int] | None:
    """Return what a number may be and the index of its last word; None if there is none."""
    text = _at(texts, start)
    if text in _FRACTIONS and text == "half":
        return [0.5], start + (_at(texts, start + 1) in {"a", "an"})
    if text in _FRACTIONS and _at(texts, start + 1) == "of":
        return [1 / _FRACTIONS[text]], start
    if not text or not (text[0].isdecimal() or text in NUMBER_WORDS or text in {"a", "one"}):
        return None
    if len(text) > _MOST_DIGITS or text.count(".") > 1:
        return None
    # A hyphen joins the words of a number: "twenty-five".
    joined = [each for each in texts[start : start + 16] if each != "-"] if text in NUMBER_WORDS else texts
    number, used = read_number(joined, 0 if joined is not texts else start)
    if text == "one" and not used and _unit(texts, start + 1)[1]:
        number, used = 1.0, 1
    if not used:
        return None
    last = start
    for _ in range(used - 1):
        last += 1 + (joined is not texts and texts[last + 1] == "-")
    numbers = [number]
    if re.fullmatch(r"\d{1,3}\.\d{3}", text):
        numbers.append(number * 1000)
    return numbers, last


def _unit(texts: Sequence[str], place: int) -> tuple[str, float, int]:
    """Return kind and size of the unit at a place, and how many words it takes; no kind and 0 without one."""
    first = place
    if _at(texts, place) == "-":
        place += 1
    between = _at(texts, place)
    place += between in BETWEEN
    text = _at(texts, place).rstrip(".")
    if text in SYMBOLS:
        return *SYMBOLS[text], place + 1 - first
    known = UNITS.get(text) or UNITS.get(text.removesuffix("s"))
    if known is None:
        return "", 0.0, 0
    kind, size = known
    return (f"working {kind}" if between in {"working", "business"} else kind), size, place + 1 - first


def _names_a_thing(words: Sequence[Word], texts: Sequence[str], start: int) -> bool:
    before = _at(texts, start - 1)
    if before in LABELS or words[start].form:
        return True
    # "A4", "RFC-2119", "a/7": directly behind a letter, a name and a hyphen, or a sign of an address
    if start == 0 or words[start - 1].end < words[start].start or before in SYMBOLS:
        return False
    is_behind_name = before == "-" and start > 1 and words[start - 2].text[0].isupper()
    return is_behind_name or before.isalpha() or before in {"/", "_", "#", "@", "."}


def _is_day(texts: Sequence[str], place: int) -> bool:
    text = _at(texts, place)
    return text.isdecimal() and len(text) <= 2 and 1 <= int(text) <= 31


def _is_year(text: str) -> bool:
    return len(text) == 4 and text.isdecimal() and 1500 <= int(text) < 2100


def _at(texts: Sequence[str], place: int) -> str:
    return texts[place] if 0 <= place < len(texts) else ""
