"""Find sentences in passages, and the sentence closest to a claim.

Closeness is the share of the claim's words that the sentence has, rare words counting more. It affects no score.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

_WORD = re.compile(r"\w")
_BREAK = re.compile(r"[.!?\u2026\u3002\uff01\uff1f]([\"'\u201d\u2019)\]]*\s+)|(\n+)")
"""The end of a sentence, and as a group the gap behind it. A pattern that begins with characters is searched fast."""

_LEAST_SHARE = 0.2
_KEPT = 16_384
"""Passages and sentences that are kept, as many rows may show the same."""


@dataclass(frozen=True, slots=True)
class Segments:
    """A passage cut into pieces that give the passage when joined.

    Args:
        pieces: Sentences and the texts between them, in order.
        sentences: Index of the piece of each sentence; None for a sentence that is not in the passage.
    """

    pieces: tuple[str, ...]
    sentences: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Closest:
    """The sentence that shares the most words with a claim.

    Args:
        passage: Index of the passage.
        piece: Index of the sentence's piece in it.
        shared: Number of words of the claim that the sentence has.
        words: Number of different words of the claim.
        share: Share of the weight of the claim's words that the sentence has, in (0, 1].
    """

    passage: int
    piece: int
    shared: int
    words: int
    share: float


@lru_cache(maxsize=_KEPT)
def segment(passage: str, sentences: tuple[str, ...] | None = None) -> Segments:
    """Cut a passage at its sentences.

    Args:
        sentences: Sentences in order, as the stages cut them, compared without white space; None cuts the passage at
            punctuation and line ends.

    >>> segment("It rains. Stay in!").pieces
    ('It rains.', ' ', 'Stay in!')
    >>> segment("It  rains. Stay in!", ("It rains.", "Go out."))
    Segments(pieces=('It  rains.', ' Stay in!'), sentences=(0, None))
    """
    spans = _spans_at_breaks(passage) if sentences is None else _spans_of(passage, sentences)
    pieces: list[str] = []
    indices: list[int | None] = []
    end = 0
    for span in spans:
        if span is None:
            indices.append(None)
            continue
        if span[0] > end:
            pieces.append(passage[end : span[0]])
        indices.append(len(pieces))
        pieces.append(passage[span[0] : span[1]])
        end = span[1]
    if end < len(passage):
        pieces.append(passage[end:])
    return Segments(tuple(pieces), tuple(indices))


class SentenceIndex:
    """An index of the sentences of all passages of a row, to find the one closest to a claim.

    Args:
        claims: Claims to look for; other words of the passages are not kept.
    """

    def __init__(self, passages: Iterable[Segments], claims: Iterable[str]) -> None:
        self._words = {claim: word_set(claim) for claim in claims}
        wanted = frozenset().union(*self._words.values())
        sentences = [
            (i, piece, wanted & word_set(passage.pieces[piece]))
            for i, passage in enumerate(passages if wanted else ())
            for piece in passage.sentences
            if piece is not None
        ]
        self._count = len(sentences)
        self._counts = Counter(chain.from_iterable(words for _, _, words in sentences))
        self._first: dict[frozenset[str], dict[int, int]] = {}  # words of claims -> passage -> first piece with them
        for i, piece, words in sentences:
            self._first.setdefault(words, {}).setdefault(i, piece)

    def closest(self, claim: str) -> Closest | None:
        """Return the closest sentence, the first of equally close ones; None if none shares enough words.

        >>> claim = "The bikes are from Delft."
        >>> closest = SentenceIndex([segment("It rains. Bikes are sold in Delft.")], [claim]).closest(claim)
        >>> closest.passage, closest.piece, closest.shared, closest.words
        (0, 2, 3, 5)
        """
        return self.closest_of(self.closest_of_each(claim))

    @staticmethod
    def closest_of(candidates: Mapping[int, Closest]) -> Closest | None:
        """Return the closest of the sentences of all passages, the first of equally close ones; None without any.

        Args:
            candidates: Closest sentence of each passage, as `closest_of_each` returns them.
        """
        return max(candidates.values(), key=lambda closest: (closest.share, -closest.passage), default=None)

    def closest_of_each(self, claim: str) -> dict[int, Closest]:
        """Return the closest sentence of each passage, by passage, if one shares enough words.

        Raises:
            KeyError: It is none of the claims of the index.
        """
        words = self._words[claim]
        weights = {word: math.log1p(self._count / (self._counts[word] or 1)) for word in words}
        total = sum(weights.values())
        best: dict[int, Closest] = {}
        for found, places in self._first.items():
            shared = words & found
            share = math.fsum(map(weights.__getitem__, shared)) / total if shared else 0.0
            if share <= _LEAST_SHARE:
                continue
            for passage, piece in places.items():
                earlier = best.get(passage)
                if earlier is None or (share, -piece) > (earlier.share, -earlier.piece):
                    best[passage] = Closest(passage, piece, len(shared), len(words), share)
        return best


@lru_cache(maxsize=_KEPT)
def word_set(text: str) -> frozenset[str]:
    """Return the different words of a text, without regard to case.

    >>> sorted(word_set("The bikes, the Bikes!"))
    ['bikes', 'the']
    """
    return frozenset(_find_words(text))


class _SpacesForOthers(dict[int, int]):
    """The table of `str.translate` that keeps characters of words; cutting at spaces is faster than a pattern."""

    def __missing__(self, code: int) -> int:
        self[code] = code if _WORD.match(chr(code)) else ord(" ")
        return self[code]


_SPACES_FOR_OTHERS = _SpacesForOthers()


def _find_words(text: str) -> list[str]:
    return text.casefold().translate(_SPACES_FOR_OTHERS).split()


def _spans_at_breaks(passage: str) -> list[tuple[int, int] | None]:
    edges = [0]
    for gap in _BREAK.finditer(passage):
        edges += gap.span(gap.lastindex or 0)
    edges.append(len(passage))
    stretches = zip(edges[::2], edges[1::2], strict=True)
    return [(start, end) for start, end in stretches if passage[start:end].strip()]


def _spans_of(passage: str, sentences: Sequence[str]) -> list[tuple[int, int] | None]:
    positions = [i for i, character in enumerate(passage) if not character.isspace()]
    dense = "".join(passage[i] for i in positions)
    spans: list[tuple[int, int] | None] = []
    start = 0
    for sentence in sentences:
        target = "".join(sentence.split())
        position = dense.find(target, start) if target else -1
        if position < 0:
            spans.append(None)
        else:
            start = position + len(target)
            spans.append((positions[position], positions[start - 1] + 1))
    return spans
