"""Align two statements, and tell what they say differently."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import permutations

from metric_core.disagreements.statements import FUNCTION_WORDS, VALUE, Statement
from metric_core.disagreements.values import DATE, agree
from metric_core.words.lexicon import NEGATIONS, OPPOSITES
from metric_core.words.tokens import stem

FEWEST = 3
"""Fewest words with content, or equal values, that two statements about the same thing have in common."""
_FUNCTION_WORD = 0.3
"""Weight of a function word; one with content has 1, a value none."""


class Difference(StrEnum):
    """What two statements say differently."""

    VALUE = "value"
    NAME = "name"
    POLARITY = "yes or no"


@dataclass(frozen=True, slots=True)
class Alignment:
    """How two statements compare.

    Args:
        alike: Share of their words that are in the same places, by weight.
        difference: The one thing that they say differently; None if that is nothing, too much or not clear.
        parts: The words of each that differ; empty if no value, name or negation differs.
        places: Where these words begin.
    """

    alike: float
    difference: Difference | None = None
    parts: tuple[str, str] = ("", "")
    places: tuple[int, int] = (0, 0)


@dataclass(slots=True)
class _Parts:
    """The parts of two aligned statements: their weight, and what differs, as places in both."""

    one: Statement
    other: Statement
    total: float = 0.0
    equal: float = 0.0
    shared: int = 0
    shared_names: int = 0
    values: list[tuple[int, int]] = field(default_factory=list)
    names: list[tuple[list[int], list[int]]] = field(default_factory=list)
    opposites: list[tuple[int, int]] = field(default_factory=list)
    negations: list[int] = field(default_factory=list)
    is_unclear: bool = False

    def add_equal(self, first: range, second: range) -> None:
        """Add words that both have in the same order."""
        a = self.one
        self.equal += 2 * sum(_weight(a.forms[x]) for x in first)
        self.total += 2 * sum(_weight(a.forms[x]) for x in first)
        self.shared += sum(a.forms[x] in a.content for x in first)
        self.shared_names += sum(x in a.names for x in first)
        self.values += [(x, y) for x, y in zip(first, second, strict=True) if a.forms[x] == VALUE]

    def add_unequal(self, first: range, second: range) -> None:
        """Add words in whose place the other statement has others, or none."""
        a, b = self.one, self.other
        self.total += sum(_weight(a.forms[x]) for x in first) + sum(_weight(b.forms[y]) for y in second)
        self.negations += [0 for x in first if a.forms[x] in NEGATIONS]
        self.negations += [1 for y in second if b.forms[y] in NEGATIONS]
        left, right = [x for x in first if x in a.values], [y for y in second if y in b.values]
        self.is_unclear |= len(left) != len(right)
        self.values += zip(left, right, strict=False)
        mine, theirs = [x for x in first if x in a.names], [y for y in second if y in b.names]
        if mine and theirs and not _are_spellings(_names(a, mine), _names(b, theirs)):
            self.names.append((mine, theirs))
            self.total -= len(mine) + len(theirs)
        self.opposites += [(x, y) for x in first for y in second if b.forms[y] in _OPPOSITE.get(a.forms[x], ())]

    def conclude(self) -> Alignment:
        """Return how the statements compare."""
        a, b = self.one, self.other
        alike = self.equal / self.total if self.total > 0 else 0.0
        known = [(x, y, agree(a.values[x][0], b.values[y][0])) for x, y in self.values]
        unequal = [(x, y) for x, y, is_same in known if is_same is False]
        if self.shared + sum(is_same is True for *_, is_same in known) < FEWEST:
            return Alignment(alike)
        if unequal:
            x, y = unequal[0]
            is_clear = not (self.is_unclear or self.names or self.negations or self.opposites)
            is_clear &= not _are_moved(a, b, unequal) and _are_of_one_time(a, unequal)
            parts = a.values[x][1], b.values[y][1]
            return Alignment(alike, Difference.VALUE if is_clear else None, parts, (x, y))
        if self.names:
            mine, theirs = self.names[0]
            is_clear = len(self.names) == 1 and not self.negations and self.shared - self.shared_names >= FEWEST - 1
            parts = _names(a, mine), _names(b, theirs)
            return Alignment(alike, Difference.NAME if is_clear else None, parts, (mine[0], theirs[0]))
        if len(self.negations) % 2 and not self.opposites:
            return Alignment(alike, Difference.POLARITY, ("no", "yes") if self.negations[0] == 0 else ("yes", "no"))
        if len(self.opposites) == 1 and not self.negations:
            x, y = self.opposites[0]
            return Alignment(alike, Difference.POLARITY, (a.forms[x], b.forms[y]), (x, y))
        return Alignment(alike)


def align(one: Statement, other: Statement, *, is_cut: Collection[tuple[int, bool]] = ()) -> Alignment:
    """Return how two statements compare.

    Args:
        is_cut: Statements, 0 or 1, that may have lost their beginning (False) or their end (True), as the first and the
            last of a passage: what the other one has there counts as if it were there.

    >>> from metric_core.disagreements.statements import read_statement
    >>> one, other = map(read_statement, ("Full-time staff get 27 days off.", "Full-time staff get thirty days off."))
    >>> align(one, other).parts
    ('27 days', 'thirty days')
    """
    blocks = SequenceMatcher(None, one.forms, other.forms, autojunk=False).get_opcodes()
    parts = _Parts(one, other)
    for index, (tag, a1, a2, b1, b2) in enumerate(blocks):
        lacking = {"insert": 0, "delete": 1}.get(tag)
        at_end = [end for end, place in ((False, 0), (True, len(blocks) - 1)) if index == place]
        if lacking is not None and any((lacking, end) in is_cut for end in at_end):
            continue
        add = parts.add_equal if tag == "equal" else parts.add_unequal
        add(range(a1, a2), range(b1, b2))
    return parts.conclude()


def _weight(form: str) -> float:
    return 0.0 if form == VALUE else _FUNCTION_WORD if form in FUNCTION_WORDS else 1.0


def _are_moved(one: Statement, other: Statement, unequal: Sequence[tuple[int, int]]) -> bool:
    """Return whether a value that differs stands in another place of the other statement, where one differs too."""
    pairs = ((one.values[x][0], other.values[y][0]) for x, _ in unequal for _, y in unequal)
    return any(agree(*pair) for pair in pairs)


def _are_of_one_time(statement: Statement, unequal: Sequence[tuple[int, int]]) -> bool:
    """Return whether no value differs besides a date: figures of another year are other figures."""
    kinds = {statement.values[x][0].kind for x, _ in unequal}
    return DATE not in kinds or len(kinds) == 1


def _names(statement: Statement, places: Sequence[int]) -> str:
    return " ".join(statement.names[place] for place in places)


def _are_spellings(one: str, other: str) -> bool:
    """Return whether two names differ in their signs, or one is the other with more behind it."""
    one, other = ("".join(c for c in name if c.isascii() and c.isalnum()) for name in (one, other))
    return one.startswith(other) or other.startswith(one)


def _index_opposites() -> dict[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for group in OPPOSITES:
        for one, other in permutations(group, 2):
            for word in one:
                found[stem(word)].update(map(stem, other))
    return dict(found)


_OPPOSITE = _index_opposites()
