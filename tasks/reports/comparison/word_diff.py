"""Find the words that differ between two texts, for pages that show them side by side."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_MOST_PAIRS = 4_000_000
"""Above this many pairs of words texts are shown unmarked: comparing them would take seconds."""

_LITTLE = 0.5
"""Share of common words, spaces included, below which texts are shown unmarked."""


class DiffPiece(NamedTuple):
    """A part of a text.

    Args:
        is_changed: True if the other text lacks it.
    """

    text: str
    is_changed: bool


def diff_words(a: str, b: str) -> tuple[list[DiffPiece], list[DiffPiece]]:
    """Return both texts in pieces, marked where the other text lacks them; unmarked if the texts have little in common.

    >>> diff_words("use it by May", "use it by March")[1]
    [DiffPiece(text='use it by ', is_changed=False), DiffPiece(text='March', is_changed=True)]
    """
    words_a, words_b = _WORDS.findall(a), _WORDS.findall(b)
    if a == b or len(words_a) * len(words_b) > _MOST_PAIRS:
        return [DiffPiece(a, False)], [DiffPiece(b, False)]
    matcher = SequenceMatcher(None, words_a, words_b, autojunk=False)
    if matcher.ratio() < _LITTLE:
        return [DiffPiece(a, False)], [DiffPiece(b, False)]
    changes = matcher.get_opcodes()
    spans_a = [(words_a[start:end], kind != "equal") for kind, start, end, _, _ in changes]
    spans_b = [(words_b[start:end], kind != "equal") for kind, _, _, start, end in changes]
    return _pieces(spans_a), _pieces(spans_b)


def word_similarity(a: str, b: str) -> float:
    """Return the similarity of two texts, from 0 to 1, word by word; an upper bound for long texts."""
    words_a, words_b = _WORDS.findall(a), _WORDS.findall(b)
    matcher = SequenceMatcher(None, words_a, words_b, autojunk=False)
    return matcher.ratio() if len(words_a) * len(words_b) <= _MOST_PAIRS else matcher.quick_ratio()


def _pieces(spans: Sequence[tuple[list[str], bool]]) -> list[DiffPiece]:
    return [DiffPiece("".join(words), is_changed) for words, is_changed in spans if words]
