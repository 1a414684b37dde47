"""Tokenize texts into comparable words: stems, normalized numbers and dates, names, negated words."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from metric_core.words.lexicon import (
    ACRONYMS,
    AUXILIARIES,
    CLAUSE_WORDS,
    CLAUSE_WORDS_AFTER_COMMA,
    JOINING_WORDS,
    MONTHS,
    NEGATIONS,
    STOP_WORDS,
)
from metric_core.words.numerals import put_months_first, spell_digits

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+|[%$€£;:.,!?()]")
_REWRITES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"[\u2018\u2019`\u00b4]", "'"),
        (r"(?i)\bwon't\b", "will not"),
        (r"(?i)\bcan(?:'t|not)\b", "can\u0020not"),
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
_ASKING = re.compile(
    r"(?i)^\W*(?:(?:and|so|but|then)\s+)?(?:how\s+(?:long|many|much|often|far|old|big|soon)|what\s+(?:time|kind|sort|happens)|\w+)\b"
)
_ISO_DATE = re.compile(r"\b(\d{4})-(0[1-9]|1[0-2])-(\d{2})\b")
_SYMBOLS = {"%": "percent", "$": "dollar", "€": "euro", "£": "pound"}
_MONTH_NAMES = tuple(name.capitalize() for name in MONTHS.values())
_PUNCTUATION = frozenset(";:.,!?()")
_SENTENCE_ENDS = frozenset(".!?")
_BRACKETS = frozenset("()")


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a sentence or claim.

    Args:
        tokens: Content words in order, as stems; numbers as digits, the month of a date before its day.
        every: All words in order, including function words, as stems.
        numbers: The tokens that are numbers.
        names: The tokens written as names: capitalized, but not at the start of a sentence.
        negated: The tokens directly after a negation that do not occur in a clause without negation.
        near_negation: All tokens of clauses with a negation.
        affirms: True for a question with "Yes" behind it, which any negation near its words contradicts.
    """

    tokens: tuple[str, ...]
    every: tuple[str, ...]
    numbers: frozenset[str]
    names: frozenset[str]
    negated: frozenset[str]
    near_negation: frozenset[str]
    affirms: bool = False

    @property
    def content(self) -> frozenset[str]:
        """The distinct content words."""
        return frozenset(self.tokens)


@lru_cache(maxsize=50_000)
def tokenize(text: str) -> Tokens:
    """Return the tokens of a text.

    >>> tokenize("On 14 March, Dr. Lee won't approve twenty-five requests for $1,000.50.").tokens
    ('month-march', '14', 'dr', 'lee', 'approv', '25', 'request', 'dollar', '1000.5')
    >>> sorted(tokenize("Interns do not get a bonus, but managers get 1.5 million euros.").negated)
    ['bonus']
    """
    units = put_months_first(spell_digits(_TOKEN.findall(_normalize_spelling(text))))
    clauses = [_tokenize_clause(clause) for clause in _group_clauses(units)]
    tokens = tuple(token for clause in clauses for token in clause.tokens)
    negative = {token for clause in clauses if clause.negated for token in clause.tokens}
    affirmed = {token for clause in clauses if not clause.negated for token in clause.tokens}
    return Tokens(
        tokens=tokens,
        every=tuple(token for clause in clauses for token in clause.every),
        numbers=frozenset(token for token in tokens if token[0].isdigit()),
        names=frozenset(token for clause in clauses for token in clause.names),
        negated=frozenset(token for clause in clauses for token in clause.negated if token) - affirmed,
        near_negation=frozenset(negative),
    )


def tokenize_claim(claim: str) -> Tokens:
    """Return the tokens of a claim; of a question before it, those that ask for something are left out.

    "No" denies what the question asks.

    >>> tokenize_claim("How long is the link valid? 60 minutes.").every
    ('link', 'valid', '60', 'minut')
    >>> sorted(tokenize_claim("Do you ship to a box? No.").negated)
    ['box', 'ship']
    """
    question, mark, answer = claim.rpartition("? ")
    if not mark:
        return tokenize(claim)
    asked, said = tokenize(_ASKING.sub("", question)), tokenize(answer)
    first = said.every[0] if said.every else ""
    denied = asked.content if first == "no" and not asked.negated else frozenset()
    return Tokens(
        tokens=asked.tokens + said.tokens,
        every=asked.tokens + (said.every[1:] if first in ("no", "yes") else said.every),
        numbers=asked.numbers | said.numbers,
        names=said.names,  # a passage may say what it is about in other words
        negated=asked.negated | said.negated | denied,
        near_negation=asked.near_negation | said.near_negation | denied,
        affirms=first == "yes",
    )


@dataclass(slots=True)
class _Clause:
    """A clause: its units, whether it opens a sentence and is conditional, and its tokens once it is tokenized."""

    opens_sentence: bool
    conditional: bool = False
    units: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    every: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    negated: list[str] = field(default_factory=list)


def _tokenize_clause(clause: _Clause) -> _Clause:
    """Fill in the tokens of a clause; `negated` has the token after each negation, or "" if there is none."""
    negations: list[int] = []
    around = zip(["", *clause.units], clause.units, [*clause.units[1:], ""], strict=False)
    for position, (before, unit, after) in enumerate(around):
        inside = position > 0 or not clause.opens_sentence
        token = _SYMBOLS.get(unit) or stem(unit.lower())
        clause.every.append(token)
        if token in NEGATIONS:
            # Not in "not only", "or not", or a title such as "Without a Trace".
            if after != "only" and before != "or" and not (inside and unit[0].isupper()):
                negations.append(len(clause.tokens))
        elif unit in ACRONYMS or unit.lower() not in STOP_WORDS:
            clause.tokens.append(token)
            if unit[0].isupper() and (inside or after[:1].isupper() or unit[1:].isupper()):
                clause.names.add(token)
    clause.negated.extend(next(iter(clause.tokens[start:]), "") for start in negations)
    return clause


def _group_clauses(units: Sequence[str]) -> list[_Clause]:
    """Group units by clause, without punctuation."""
    clauses = [_Clause(opens_sentence=True)]
    for position, unit in enumerate(units):
        if unit in _SENTENCE_ENDS or unit in _BRACKETS:
            clauses.append(_Clause(opens_sentence=unit in _SENTENCE_ENDS))
        elif unit not in _PUNCTUATION:
            if _opens_clause(units, position, after_condition=clauses[-1].conditional):
                opens_sentence = clauses[-1].opens_sentence and not clauses[-1].units
                clauses.append(_Clause(opens_sentence, conditional=unit.lower() in CLAUSE_WORDS))
            clauses[-1].units.append(unit)
    return clauses


def _opens_clause(units: Sequence[str], position: int, after_condition: bool) -> bool:
    lower = units[position].lower()
    following = units[position + 1].lower() if position + 1 < len(units) else ""
    if lower in CLAUSE_WORDS:
        # "covers fire but not water" omits the verb, so it is one clause.
        return (lower, following) != ("but", "not")
    if position and units[position - 1] == ",":
        return after_condition or lower in CLAUSE_WORDS_AFTER_COMMA
    # "may travel and must not pay" has two clauses, "travel and food" is not a clause.
    return lower in JOINING_WORDS and following in AUXILIARIES


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Strip the most common endings of a word, so that its inflected forms are equal.

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


def _normalize_spelling(text: str) -> str:
    """Return the text without accents, contractions, possessives and dots inside abbreviations."""
    text = unicodedata.normalize("NFKC", text)
    text = "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))
    text = _ISO_DATE.sub(lambda date: f"{_MONTH_NAMES[int(date[2]) - 1]} {int(date[3])} {date[1]}", text)
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    return text
