"""Recognize responses that give no answer by the forms of such sentences, and determine their kind.

The forms cover the languages named in `LANGUAGES`. They know the usual ways to say that one cannot help, that nothing
was found, or to ask what is meant, not every way to avoid an answer: a judge with a language model recognizes more.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from metric_core.refusals.language_forms import LANGUAGES, LanguageForms, read_forms
from metric_core.refusals.refusal_kinds import RefusalKind

__all__ = ["LANGUAGES", "declines", "is_refusal", "refusal_kind", "split_rough_sentences"]

_BOUNDARY = r"\b"


@cache
def _all_forms() -> re.Pattern[str]:
    """Return a pattern of all forms with a group per kind, in which a boundary is looked for once for each kind.

    It is compiled at its first use since that takes long.
    """
    groups = []
    for kind in RefusalKind:
        forms = [form for language in read_forms().values() for form in language.forms[kind]]
        bounded = "|".join(form.removeprefix(_BOUNDARY) for form in forms if form.startswith(_BOUNDARY))
        others = (form for form in forms if not form.startswith(_BOUNDARY))
        groups.append(f"(?P<{kind.name}>{'|'.join([f'{_BOUNDARY}(?:{bounded})', *others])})")
    return re.compile(unicodedata.normalize("NFC", "|".join(groups)))


@dataclass(frozen=True, slots=True)
class _Patterns:
    """The patterns of all languages beside the forms; `LanguageForms` describes them."""

    caveat: re.Pattern[str]
    courtesy: re.Pattern[str]
    turn: re.Pattern[str]
    about_source: re.Pattern[str]
    options: re.Pattern[str]
    clause_end: re.Pattern[str]


@cache
def _patterns() -> _Patterns:
    """Return the patterns, which are read and compiled at their first use since that takes long."""

    def any_of(select: Callable[[LanguageForms], str]) -> str:
        return "|".join(filter(None, map(select, read_forms().values())))

    contrasts, concessions = any_of(lambda each: each.contrasts), any_of(lambda each: each.concessions)
    return _Patterns(
        caveat=re.compile(any_of(lambda each: each.caveats)),
        courtesy=re.compile(any_of(lambda each: each.courtesies)),
        turn=re.compile(f"(?:{any_of(lambda each: each.turns)}){_NO_ADMONITION}"),
        about_source=re.compile(any_of(lambda each: each.about_sources)),
        options=re.compile(any_of(lambda each: each.options)),
        clause_end=re.compile(rf"{_SENTENCE_END.pattern}|,?\s+(?=(?:{contrasts})\s)|,\s+(?=(?:{concessions})\s)"),
    )


_NO_ADMONITION = r"(?!,? it(?:'s| is) (?:\w+ )?(?:important|essential|crucial))"
"""Follows the opening of an answer, but not of an admonition."""
_NO_APOSTROPHE = re.compile(r"\b(do|does|did|is|are|was|were|has|have|could|would|should|ca|wo)nt\b")
_MARKUP = re.compile(r"[*_`#>~]+|^\s*[-\u2022]\s+", re.MULTILINE)
_QUOTE = re.compile(r"[\"“„«][^\"“”„«»]{0,300}[\"”“»]")
_QUOTE_MARKS = '"“”„«»'
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；।])|\n+")
_MOST_SENTENCES = 200
"""Sentences that are read; a text that declines says so early."""


def is_refusal(sentence: str) -> bool:
    """Return whether a sentence is a form of refusal of any kind.

    >>> [is_refusal(text) for text in ("The handbook does not mention a gym.", "Das steht nicht im Handbuch.")]
    [True, True]
    >>> is_refusal("The gym is free on Mondays.")
    False
    """
    return _sentence_kind(_prepare(sentence)) is not None


def declines(text: str) -> bool:
    """Return whether a text gives no answer: whether it has a `refusal_kind`.

    >>> declines("The trip takes two hours by ferry from either port. The price is not mentioned in the text.")
    False
    """
    return refusal_kind(text) is not None


@lru_cache(maxsize=1024)  # metrics and the diagnosis of a row read its texts, soon after each other
def refusal_kind(text: str) -> RefusalKind | None:
    """Return the kind of refusal that a text is; None for an answer.

    A text is a refusal if at least half of it refuses, by length, courtesies aside; what comes before the first refusal
    counts twice, so that an answer which only notes what else is unknown is an answer. So is a text that continues
    "However, ..." right after a refusal. A policy refusal that opens the text decides alone, whatever admonition
    follows it. A clarifying question is one if nothing but the options to choose from comes before it.

    >>> refusal_kind("I am sorry, but I could not find anything about this. Please ask your team lead.")
    <RefusalKind.NOTHING_FOUND: 'nothing found'>
    >>> refusal_kind("I can't assist with that. It is important to respect the law.")
    <RefusalKind.POLICY_REFUSAL: 'policy refusal'>
    >>> refusal_kind("There are two models. Which one do you mean?")
    <RefusalKind.CLARIFYING_QUESTION: 'clarifying question'>
    >>> refusal_kind("I do not know the price. However, the ferry takes two hours."), refusal_kind("")
    (None, None)
    """
    reading = _Reading()
    clauses = _split(_prepare(text), _patterns().clause_end)
    unread = sum(map(len, clauses))
    for clause in clauses:
        reading.add(clause)
        unread -= len(clause)
        if reading.is_answer_despite(unread):
            return None
    return reading.kind


class _Reading:
    """Lengths and kinds of the clauses of a text that were read so far."""

    def __init__(self) -> None:
        self._first: RefusalKind | None = None
        self._declining = self._other = 0
        self._opens_with_policy = self._decides = self._turned = False
        self._offers_options = self._ends_asking = self._refused_last = False

    def add(self, clause: str) -> None:
        """Read the next clause."""
        kind = _sentence_kind(clause)
        if kind is RefusalKind.CLARIFYING_QUESTION:
            self._ends_asking = True
        elif kind is not None:
            self._refuse(kind, clause)
        elif not _patterns().courtesy.search(clause) and not clause.endswith(("?", "？")):
            self._say(clause)

    @property
    def kind(self) -> RefusalKind | None:
        """Kind of the text; None for an answer."""
        if self._first is None:
            asks = self._ends_asking and (self._offers_options or not self._other)
            return RefusalKind.CLARIFYING_QUESTION if asks else None
        if self._turned:
            return None
        return self._first if self._decides or self._other <= self._declining else None

    def is_answer_despite(self, unread: int) -> bool:
        """Return whether the text is an answer even if all that follows, of this length, refuses."""
        return not (self._decides or self._offers_options) and self._other > self._declining + unread

    def _refuse(self, kind: RefusalKind, clause: str) -> None:
        if self._first is None:
            self._first = kind
            self._opens_with_policy = kind is RefusalKind.POLICY_REFUSAL and not self._other
        if self._opens_with_policy and not self._other:
            self._decides = self._decides or not _patterns().caveat.search(clause)
        self._declining += len(clause)
        self._refused_last = True

    def _say(self, clause: str) -> None:
        self._ends_asking = False
        if self._first is None and not self._other:
            self._offers_options = _patterns().options.match(clause) is not None
        if self._refused_last and _patterns().turn.match(clause) and not _patterns().about_source.search(clause):
            self._turned = True
        self._refused_last = False
        self._other += len(clause) * (2 if self._first is None else 1)


def split_rough_sentences(text: str) -> Sequence[str]:
    """Return the sentences of a text, roughly: cut at end marks, semicolons and line breaks.

    >>> split_rough_sentences("It rains. Take a coat; go.")
    ['It rains.', 'Take a coat;', 'go.']
    """
    return _split(text, _SENTENCE_END)


def _split(text: str, end: re.Pattern[str]) -> list[str]:
    parts = (part.strip() for part in end.split(text, maxsplit=_MOST_SENTENCES))
    return [part for part in parts if any(character.isalnum() for character in part)]


def _prepare(text: str) -> str:
    """Return a text as the forms expect it: in lower case, without markup, and without what it quotes."""
    plain = unicodedata.normalize("NFC", text).replace("\u2019", "'").replace("\u2018", "'").lower()
    plain = _MARKUP.sub("", _NO_APOSTROPHE.sub(r"\1n't", plain)).strip()
    inner = plain.strip(_QUOTE_MARKS)
    if any(mark in inner for mark in _QUOTE_MARKS):
        return _QUOTE.sub("this", plain)
    return inner


def _sentence_kind(sentence: str) -> RefusalKind | None:
    found = _all_forms().search(sentence)
    return None if found is None or found.lastgroup is None else RefusalKind[found.lastgroup]
