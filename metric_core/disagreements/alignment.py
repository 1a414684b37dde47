"""Align two statements, and tell what they say differently."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import permutations, product

from metric_core.disagreements.statements import FUNCTION_WORDS, VALUE, Statement
from metric_core.disagreements.values import DATE, agree
from metric_core.words.lexicon import NEGATIONS, OPPOSITES
from metric_core.words.tokens import stem

_FEWEST = 3
"""Fewest words with content, or equal values, that two statements about the same thing have in common."""
_FEWEST_BESIDE_NAMES = 2
_FUNCTION_WORD = 0.3
"""Weight of a function word; one with content has 1, a value none."""


class Difference(StrEnum):
    """Kind of the one thing that two statements say differently."""

    VALUE = "value"
    NAME = "name"
    POLARITY = "yes or no"


@dataclass(frozen=True, slots=True)
class Alignment:
    """The comparison of two statements.

    Args:
        alike: Share of their words that are in the same places, by weight.
        difference: The one thing that they say differently; None if that is nothing, too much or not clear.
        parts: The words of each that differ; empty if no value, name or negation differs.
        places: Places of these words.
    """

    alike: float
    difference: Difference | None = None
    parts: tuple[str, str] = ("", "")
    places: tuple[int, int] = (0, 0)


def align(a: Statement, b: Statement, *, is_cut: Collection[tuple[str, bool]] = ()) -> Alignment:
    """Return how two statements compare.

    Args:
        is_cut: Statements, "insert" for the first and "delete" for the second one, that may have lost their beginning
            (False) or their end (True): what the other one has there counts as if it were there.

    >>> from metric_core.disagreements.statements import read_statement
    >>> one, other = map(read_statement, ("Full-time staff get 27 days off.", "Full-time staff get thirty days off."))
    >>> align(one, other).parts
    ('27 days', 'thirty days')
    """
    blocks = SequenceMatcher(None, a.forms, b.forms, autojunk=False).get_opcodes()
    ends = {0: False, len(blocks) - 1: True}
    kept = [block for place, block in enumerate(blocks) if (block[0], ends.get(place)) not in is_cut]
    common = [(a1 + step, b1 + step) for tag, a1, a2, b1, _ in kept if tag == "equal" for step in range(a2 - a1)]
    rest = [(range(a1, a2), range(b1, b2)) for tag, a1, a2, b1, b2 in kept if tag != "equal"]
    return _Aligned(a, b, common, rest).conclude()


class _Aligned:
    """Two aligned statements: the places of the words that are common, and of those between them."""

    def __init__(
        self, a: Statement, b: Statement, common: list[tuple[int, int]], rest: list[tuple[range, range]]
    ) -> None:
        self.a, self.b = a, b
        named = [([x for x in xs if x in a.names], [y for y in ys if y in b.names]) for xs, ys in rest]
        parts = [(_names(a, xs), _names(b, ys), min(xs, default=0), min(ys, default=0)) for xs, ys in named]
        self.names = [each for each in parts if all(each[:2]) and not _are_spellings(*each[:2])]
        valued = [([x for x in xs if x in a.values], [y for y in ys if y in b.values]) for xs, ys in rest]
        self.is_unclear = any(len(xs) != len(ys) for xs, ys in valued)
        pairs = [(x, y) for x, y in common if x in a.values]
        pairs += [pair for xs, ys in valued for pair in zip(xs, ys, strict=False)]
        known = [(x, y, agree(a.values[x][0], b.values[y][0])) for x, y in pairs]
        self.unequal = [(x, y) for x, y, is_same in known if is_same is False]
        shared = [x for x, _ in common if a.forms[x] in a.content]
        self.shared = len(shared) + sum(is_same is True for *_, is_same in known)
        self.shared_words = sum(x not in a.names for x in shared)
        self.denies = [sum(a.forms[x] in NEGATIONS for xs, _ in rest for x in xs)]
        self.denies += [sum(b.forms[y] in NEGATIONS for _, ys in rest for y in ys)]
        self.opposites = [
            (x, y) for xs, ys in rest for x, y in product(xs, ys) if b.forms[y] in _OPPOSITE.get(a.forms[x], ())
        ]
        equal = 2 * sum(_weight(a.forms[x]) for x, _ in common)
        unequal = sum(_weight(a.forms[x]) for xs, _ in rest for x in xs)
        unequal += sum(_weight(b.forms[y]) for _, ys in rest for y in ys)
        unequal -= sum(len(each.split()) for names in self.names for each in names[:2])
        self.alike = equal / (equal + unequal) if equal + unequal > 0 else 0.0

    def conclude(self) -> Alignment:
        """Return how the statements compare."""
        a, b, alike, is_denied = self.a, self.b, self.alike, any(self.denies)
        if self.shared < _FEWEST:
            return Alignment(alike)
        if self.unequal:
            x, y = self.unequal[0]
            is_clear = not (self.is_unclear or self.names or is_denied or self.opposites or self._are_of_other_times())
            return Alignment(alike, Difference.VALUE if is_clear else None, (a.values[x][1], b.values[y][1]), (x, y))
        if self.names:
            one, other, x, y = self.names[0]
            is_clear = len(self.names) == 1 and not is_denied and self.shared_words >= _FEWEST_BESIDE_NAMES
            return Alignment(alike, Difference.NAME if is_clear else None, (one, other), (x, y))
        if sum(self.denies) % 2 and not self.opposites:
            return Alignment(alike, Difference.POLARITY, ("no", "yes") if self.denies[0] else ("yes", "no"))
        if len(self.opposites) == 1 and not is_denied:
            x, y = self.opposites[0]
            return Alignment(alike, Difference.POLARITY, (a.forms[x], b.forms[y]), (x, y))
        return Alignment(alike)

    def _are_of_other_times(self) -> bool:
        """Return whether a date differs besides values, which is their reason, or a value has only moved."""
        ones = [self.a.values[x][0] for x, _ in self.unequal]
        others = [self.b.values[y][0] for _, y in self.unequal]
        kinds = {value.kind for value in ones}
        return (DATE in kinds and len(kinds) > 1) or any(agree(*pair) for pair in product(ones, others))


def _weight(form: str) -> float:
    return 0.0 if form == VALUE else _FUNCTION_WORD if form in FUNCTION_WORDS else 1.0


def _names(statement: Statement, places: Sequence[int]) -> str:
    return " ".join(statement.names[place] for place in places)


def _are_spellings(one: str, other: str) -> bool:
    """Return whether two names differ in their signs, or one is the other with more behind it."""
    one, other = ("".join(c for c in name if c.isascii() and c.isalnum()) for name in (one, other))
    return one.startswith(other) or other.startswith(one)


def _index_opposites() -> dict[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for one, other in (pair for group in OPPOSITES for pair in permutations(group, 2)):
        for word in one:
            found[stem(word)].update(map(stem, other))
    return dict(found)


_OPPOSITE = _index_opposites()
