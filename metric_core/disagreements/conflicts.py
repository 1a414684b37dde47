"""Find statements of passages that give different values for the same thing."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from metric_core.disagreements.alignment import Alignment, Difference, align
from metric_core.disagreements.statements import Statement, split_statements
from metric_core.disagreements.values import agree

LEAST_ALIKE = {Difference.VALUE: 0.7, Difference.NAME: 0.9, Difference.POLARITY: 0.8}
"""Least share of common words of two statements that disagree."""
_SIBLING = 0.15
"""Statements of one passage form a series if they are at most so much less alike than a pair across passages."""
_LEAST_SHARED, _FEWEST_SHARED = 0.5, 2
"""Least share and number of common words with content of statements that are aligned."""
_OTHER_NAMES, _SAME_NAMES = 3, 0.7
"""Passages about different things: each has so many names that the other lacks, and less than this share is common."""


@dataclass(frozen=True, slots=True)
class Said:
    """A statement of a passage.

    Args:
        passage: Index of the passage.
        part: The words of the statement that differ; "yes" or "no" if only a negation does.
    """

    passage: int
    statement: str
    part: str


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two statements of different passages that disagree.

    Args:
        alike: Share of their words that are common.
    """

    one: Said
    other: Said
    difference: Difference
    alike: float


@dataclass(frozen=True, slots=True)
class _Located:
    """A statement, its passage, and whether the passage begins and ends with it."""

    statement: Statement
    passage: int
    is_first: bool
    is_last: bool


class _Passages:
    """The statements of passages, and how those compare that have enough words in common."""

    def __init__(self, passages: Sequence[str], question: str) -> None:
        self.asked = split_statements(question)
        asked = {form for each in self.asked for form in (*each.forms, *each.names.values())}
        self.located = _locate_relevant(passages, self.asked)
        self.names: list[set[str]] = [set() for _ in passages]
        for each in self.located:
            self.names[each.passage] |= set(each.statement.names.values()) - asked
        self.aligned: defaultdict[int, dict[int, Alignment]] = defaultdict(dict)
        for one, other in _candidates(self.located):
            found = self._align(one, other)
            self.aligned[one][other] = found
            swapped = replace(found, parts=found.parts[::-1], places=found.places[::-1])
            self.aligned[other][one] = swapped

    def _align(self, one: int, other: int) -> Alignment:
        first, second = self.located[one], self.located[other]
        ends = [(first, "insert"), (second, "delete")]
        cut = {(tag, False) for each, tag in ends if each.is_first} | {
            (tag, True) for each, tag in ends if each.is_last
        }
        return align(first.statement, second.statement, is_cut=cut)

    def disagreements(self) -> Iterator[Disagreement]:
        """Yield the pairs of statements that disagree."""
        for one, others in self.aligned.items():
            for other, found in others.items():
                first, second = self.located[one], self.located[other]
                if first.passage >= second.passage or found.difference is None:
                    continue
                if found.alike >= LEAST_ALIKE[found.difference] and self._are_of_one_thing(one, other, found):
                    yield Disagreement(
                        Said(first.passage, first.statement.text, found.parts[0]),
                        Said(second.passage, second.statement.text, found.parts[1]),
                        found.difference,
                        found.alike,
                    )

    def _are_of_one_thing(self, one: int, other: int, found: Alignment) -> bool:
        first, second = (self.names[self.located[each].passage] for each in (one, other))
        are_others = min(len(first - second), len(second - first)) >= _OTHER_NAMES
        if are_others and len(first & second) < _SAME_NAMES * min(len(first), len(second)):
            return False
        return not (self._is_in_series(one, other, found) or self._is_in_series(other, one, found)) and not any(
            self._asks_about_one(asked, one, other, found) for asked in self.asked
        )

    def _is_in_series(self, one: int, other: int, found: Alignment) -> bool:
        """Return whether the passage of a statement has another like it, or one that says what the other one says."""
        passage = self.located[one].passage
        for index, beside in self.aligned[one].items():
            if self.located[index].passage == passage and beside.alike >= found.alike - _SIBLING and any(beside.parts):
                return True
        return any(
            index != one and self.located[index].passage == passage and not any(across.parts)
            for index, across in self.aligned[other].items()
            if across.alike >= found.alike - _SIBLING
        )

    def _asks_about_one(self, asked: Statement, one: int, other: int, found: Alignment) -> bool:
        """Return whether a question names one of both values, so that the other one is about something else."""
        known: list[bool] = []
        for index, place, part in zip((one, other), found.places, found.parts, strict=True):
            statement = self.located[index].statement
            if found.difference is Difference.VALUE:
                known.append(any(agree(statement.values[place][0], value) for value, _ in asked.values.values()))
            else:
                known.append(not {*part.split()}.isdisjoint({*asked.names.values(), *asked.forms}))
        return known[0] != known[1]


def find_disagreements(passages: Sequence[str], question: str = "") -> list[Disagreement]:
    """Return the pairs of statements of different passages that disagree, the most alike first.

    Args:
        question: Question that the passages were retrieved for. A value that it names is a condition, not a finding.

    >>> found = find_disagreements(["Camera footage is kept for 72 hours.", "Camera footage is kept for two days."])
    >>> [(each.one.part, each.other.part) for each in found]
    [('72 hours', 'two days')]
    >>> find_disagreements(["Camera footage is kept for 72 hours.", "Camera footage is kept for three days."])
    []
    """
    return sorted(_Passages(passages, question).disagreements(), key=lambda each: -each.alike)


def find_relevant(passages: Sequence[str], question: str) -> list[int]:
    """Return the indices of the passages that have a word of the question, if that has any.

    >>> find_relevant(["Camera footage is kept for 72 hours.", "It rains."], "How long is footage kept?")
    [0]
    """
    return sorted({each.passage for each in _locate_relevant(passages, split_statements(question))})


def _locate_relevant(passages: Sequence[str], asked: Sequence[Statement]) -> list[_Located]:
    """Return the statements of the passages that have a word of a question."""
    wanted = frozenset(form for each in asked for form in each.content)
    located = ([*_locate(index, text)] for index, text in enumerate(passages))
    return [each for passage in located if _is_relevant(passage, wanted) for each in passage]


def _locate(passage: int, text: str) -> Iterator[_Located]:
    statements = split_statements(text)
    for place, statement in enumerate(statements):
        yield _Located(statement, passage, place == 0, place == len(statements) - 1)


def _is_relevant(passage: Sequence[_Located], wanted: Collection[str]) -> bool:
    """Return whether a passage has a word of the question, if that has any."""
    return not wanted or any(not each.statement.content.isdisjoint(wanted) for each in passage)


def _candidates(located: Sequence[_Located]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of statements that have enough words in common to be aligned."""
    by_word: defaultdict[str, list[int]] = defaultdict(list)
    for index, each in enumerate(located):
        common: defaultdict[int, int] = defaultdict(int)
        for word in each.statement.content:
            for earlier in by_word[word]:
                common[earlier] += 1
            by_word[word].append(index)
        for earlier, shared in common.items():
            fewest = min(len(each.statement.content), len(located[earlier].statement.content))
            if shared >= max(_FEWEST_SHARED, _LEAST_SHARED * fewest):
                yield earlier, index
