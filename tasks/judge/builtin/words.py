"""Texts as words that can be compared: stems, numbers and dates in one spelling, names, negated words."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from tasks.judge.builtin.lexicon import (
    ACRONYMS,
    AUXILIARIES,
    CLAUSE_WORDS,
    CLAUSE_WORDS_AFTER_COMMA,
    JOINING_WORDS,
    MONTHS,
    NEGATIONS,
    NUMBER_SCALES,
    NUMBER_WORDS,
    STOP_WORDS,
)

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+|[%$€£;:.,!?()]")
_REWRITES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"[\u2018\u2019`\u00b4]", "'"),
        (r"(?i)\bwon't\b", "will not"),
        (r"(?i)\bcan(?:'t|not)\b", "can not"),
        (r"(?i)n't\b", " not"),
        (r"(?i)'s\b", ""),
        (r"(?i)\bnon-\s?", "non"),
        (r"(?i)\bout[- ]of[- ]+(?=\w)", "outof"),
        (r"\b(Dr|Mr|Mrs|Ms|Prof|St|No|Inc|Jr|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.", r"\1"),
        (r"(?<=\b[A-Z])\.(?=[A-Z]\b)|(?<=\.[A-Z])\.", ""),
        (r"(?i)\b([ap])\.\s?m\b\.?", r"\1m"),
        (r"\b(\d{1,2}):00\b", r"\1"),
        (r"(?<=\d)(?:st|nd|rd|th)\b", ""),
        (r"(?i)(?<=\d)k\b", " thousand"),
        (r"(?<=\d)(?=[A-Za-z])", " "),
    )
)
_ISO_DATE = re.compile(r"\b(\d{4})-(0[1-9]|1[0-2])-(\d{2})\b")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_SYMBOLS = {"%": "percent", "$": "dollar", "€": "euro", "£": "pound"}
_TENS = frozenset(range(20, 100, 10))
_MONTH_NAMES = tuple(name.capitalize() for name in MONTHS.values())
_PUNCTUATION = frozenset(";:.,!?()")
_SENTENCE_ENDS = frozenset(".!?")
_BRACKETS = frozenset("()")


@dataclass(frozen=True, slots=True)
class Words:
    """A sentence or claim as words.

    Args:
        tokens: its content words in order, as stems; numbers as digits, a date's month before its day.
        every: all its words in order, function words too, as stems.
        numbers: the tokens that are numbers.
        names: the tokens written as names: capitalised where no sentence starts.
        negated: the tokens right behind a negation that no clause without one holds.
        near_negation: all tokens of clauses with a negation.
    """

    tokens: tuple[str, ...]
    every: tuple[str, ...]
    numbers: frozenset[str]
    names: frozenset[str]
    negated: frozenset[str]
    near_negation: frozenset[str]

    @property
    def content(self) -> frozenset[str]:
        """The distinct content words."""
        return frozenset(self.tokens)


@lru_cache(maxsize=50_000)
def words(text: str) -> Words:
    """The content words of a text.

    >>> words("On 14 March, Dr. Lee won't approve twenty-five requests for $1,000.50.").tokens
    ('month-march', '14', 'dr', 'lee', 'approv', '25', 'request', 'dollar', '1000.5')
    >>> sorted(words("Interns do not get a bonus, but managers get 1.5 million euros.").negated)
    ['bonus']
    """
    units = _with_months_first(_with_digits(_TOKEN.findall(_spelled(text))))
    tokens: list[str] = []
    every: list[str] = []
    names: set[str] = set()
    negated: set[str] = set()
    near_negation: set[str] = set()
    affirmed: set[str] = set()
    for clause in _clauses(units):
        first = len(tokens)
        negations: list[int] = []
        for position, unit in enumerate(clause.units):
            before, after = clause.around(position)
            inside = position > 0 or not clause.opens_sentence
            token = _SYMBOLS.get(unit) or stem(unit.lower())
            every.append(token)
            if token in NEGATIONS:
                # Not in "not only", "or not", or a title such as "Without a Trace".
                if after != "only" and before != "or" and not (inside and unit[0].isupper()):
                    negations.append(len(tokens))
            elif unit in ACRONYMS or unit.lower() not in STOP_WORDS:
                tokens.append(token)
                if unit[0].isupper() and (inside or after[:1].isupper() or unit[1:].isupper()):
                    names.add(token)
        for place in negations:
            negated.update(tokens[place : place + 1])
        (near_negation if negations else affirmed).update(tokens[first:])
    numbers = frozenset(token for token in tokens if token[0].isdigit())
    sets = (numbers, frozenset(names), frozenset(negated - affirmed), frozenset(near_negation))
    return Words(tuple(tokens), tuple(every), *sets)


@dataclass(slots=True)
class _Clause:
    opens_sentence: bool
    units: list[str] = field(default_factory=list)
    conditional: bool = False

    def around(self, position: int) -> tuple[str, str]:
        """The units before and after one, empty at the ends."""
        return (["", *self.units][position], [*self.units, ""][position + 1])


def _clauses(units: Sequence[str]) -> list[_Clause]:
    """The units by clause, without punctuation."""
    found = [_Clause(opens_sentence=True)]
    for position, unit in enumerate(units):
        if unit in _SENTENCE_ENDS or unit in _BRACKETS:
            found.append(_Clause(opens_sentence=unit in _SENTENCE_ENDS))
        elif unit not in _PUNCTUATION:
            if _opens_clause(units, position, after_condition=found[-1].conditional):
                opens_sentence = found[-1].opens_sentence and not found[-1].units
                found.append(_Clause(opens_sentence, conditional=unit.lower() in CLAUSE_WORDS))
            found[-1].units.append(unit)
    return found


def _opens_clause(units: Sequence[str], position: int, after_condition: bool) -> bool:
    lower = units[position].lower()
    if lower in CLAUSE_WORDS:
        return True
    if position and units[position - 1] == ",":
        return after_condition or lower in CLAUSE_WORDS_AFTER_COMMA
    # "may travel and must not pay" has two clauses, "travel and food" has none.
    return lower in JOINING_WORDS and any(word.lower() in AUXILIARIES for word in units[position + 1 : position + 2])


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """A word without its commonest endings, so that forms of one word are equal.

    >>> [stem(word) for word in ("policies", "required", "requires", "planning", "plans", "employee", "employer")]
    ['policy', 'requir', 'requir', 'plan', 'plan', 'employe', 'employer']
    """
    if len(word) <= 3 or not word.isalpha():
        return word
    for ending, replacement in (
        ("ies", "y"),
        ("ied", "y"),
        ("sses", "ss"),
        ("xes", "x"),
        ("ches", "ch"),
        ("shes", "sh"),
    ):
        if word.endswith(ending) and len(word) > 4:
            return word[: -len(ending)] + replacement
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ingly", "edly", "ing", "ed", "ly"):
        root = word[: -len(ending)]
        if word.endswith(ending) and len(root) >= 3 and any(vowel in root for vowel in "aeiouy"):
            undoubled = root[-1] == root[-2] and root[-1] not in "lsz"
            word = root[:-1] if undoubled else root
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def _spelled(text: str) -> str:
    """The text without accents, contractions, possessives and dots inside abbreviations."""
    text = unicodedata.normalize("NFKC", text)
    text = "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))
    text = _ISO_DATE.sub(lambda date: f"{_MONTH_NAMES[int(date[2]) - 1]} {int(date[3])} {date[1]}", text)
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    return text


def _with_digits(units: Sequence[str]) -> list[str]:
    """The units with every number, whether in digits or in words, as one unit of digits."""
    found: list[str] = []
    position = 0
    while position < len(units):
        value, used = _number(units, position)
        found.append(f"{value:.12g}" if used else units[position])
        position += used or 1
    return found


def _number(units: Sequence[str], start: int) -> tuple[float, int]:
    """The number that starts here and how many units it takes; 0 units if none does.

    >>> _number(["two", "thousand", "five", "hundred", "and", "six"], 0)
    (2506.0, 6)
    """
    lower = [unit.lower() for unit in units[start : start + 12]]
    value = _simple_number(lower)
    if value is None:
        return 0.0, 0
    used = 1
    if value in _TENS and not lower[0].isdigit() and NUMBER_WORDS.get(lower[1] if len(lower) > 1 else "", 10) < 10:
        value, used = value + NUMBER_WORDS[lower[1]], 2
    scale = 1
    while used < len(lower) and lower[used] in NUMBER_SCALES:
        scale = NUMBER_SCALES[lower[used]]
        value, used = value * scale, used + 1
    rest = used + (lower[used : used + 1] == ["and"])
    if scale > 1 and rest < len(lower) and lower[rest] in NUMBER_WORDS:
        more, taken = _number(units, start + rest)
        if more < scale:
            return value + more, rest + taken
    return value, used


def _simple_number(lower: Sequence[str]) -> float | None:
    word, following = lower[0], lower[1] if len(lower) > 1 else ""
    if word[0].isdigit():
        plain = word.replace(",", "") if _THOUSANDS.fullmatch(word) else word.replace(",", ".")
        # Several dots (a version, a date) are no number: only the digits count.
        return float(plain) if plain.count(".") <= 1 else float(plain.replace(".", ""))
    if word in {"a", "one"} and following in NUMBER_SCALES:
        return 1.0
    return float(NUMBER_WORDS[word]) if word in NUMBER_WORDS else None


def _with_months_first(units: Sequence[str]) -> list[str]:
    """The units with months in one spelling and before their day, whichever way the date is written."""
    found = list(units)
    for position, unit in enumerate(found):
        around = found[max(position - 1, 0) : position + 2]
        month = MONTHS.get(unit[:3].lower()) if unit[0].isupper() else None
        dated = any(neighbour[0].isdigit() for neighbour in around)
        if month is None or unit.lower() not in {month, month[:3], "sept"} or (len(unit) <= 4 and not dated):
            continue
        found[position] = f"month-{month}"
        if position and _is_day(found[position - 1]):
            found[position - 1 : position + 1] = [found[position], found[position - 1]]
    return found


def _is_day(unit: str) -> bool:
    return unit.isdigit() and 1 <= int(unit) <= 31
