"""Compare the text of a span with that of a chunk: which part of the span the chunk holds, and what it has changed.

Texts are compared word by word. Layout, case and punctuation do not count; numbers with their points and minus signs,
currency and comparison signs do. A piece of a span counts only if nothing but the border of the chunk cuts it off, so a
word that was added, removed or changed inside a span is never overlooked.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from typing import TypeAlias

_PUNCTUATION = r"""!"#&()*,\-./:;?@\[\\\]^_`{|}~\u00a1\u00ab\u00b6\u00b7\u00bb\u00bf\u2000-\u206f\u3000-\u303f"""
_UNSPACED = r"\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff"
"""Scripts without spaces between words, each of whose characters counts as a word."""
_WORDS = re.compile(rf"(?<![\w)])-(?=\d)|\d+(?:[.,:/]\d+)*|[{_UNSPACED}]|[^\s\d{_PUNCTUATION}{_UNSPACED}]+")
_APOSTROPHES = re.compile("['\u2019]")
LEAST_PIECE = 16
"""Least number of characters of a piece of a span: fewer at the border of a chunk may be there by chance."""
_SEED = 12
_LONG = 30
"""Words from which on a span is taken for a whole passage."""
_SLIP = 1
"""Characters that pieces may leave out between them: the space at which chunks were cut."""
_WORDS_SHOWN = 6
AROUND = 40
"""Characters before and after a span by which places are distinguished."""


def normal_text(text: str) -> str:
    """Return the words of a text, in lower case, with one space between them.

    >>> normal_text("**The rider's fee** is  -3.50 € (a year).")
    'the riders fee is - 3.50 € a year'
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return " ".join(_WORDS.findall(_APOSTROPHES.sub("", text).casefold()))


Beside: TypeAlias = tuple[str, str]
"""The words before and after a span; empty where they are not known."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a span that a chunk holds.

    Args:
        start: Position of its first character in the bounded text of the span.
        end: Position after its last character.
        beside: The chunk's text before and after the part, wherever in the chunk the part is; empty if its border cuts
            the span.
    """

    start: int
    end: int
    beside: tuple[Beside, ...] = (("", ""),)


def count_equal_sides(one: Beside, other: Beside) -> int | None:
    """Return on how many sides the same words are beside two texts; None if no side of both is long enough.

    >>> one, other = ("members of the gym", "in delft or by post"), ("guests of the big spa", "in delft or online")
    >>> count_equal_sides(one, other), count_equal_sides(one, ("", ""))
    (0, None)
    """
    sides = (one[0][::-1], other[0][::-1]), (one[1], other[1])
    known = [(a, b) for a, b in sides if min(len(a), len(b)) >= LEAST_PIECE]
    return sum(a[:LEAST_PIECE] == b[:LEAST_PIECE] for a, b in known) if known else None


def bound_text(span: str) -> str:
    """Return the normal text of a span with a space at each end that a word must end at.

    A long span is a whole passage, which may begin or end inside a word, but not inside a number.

    >>> bound_text("the fee is 40"), len(bound_text("a " * 30 + "fee is 40")) - len("a " * 30 + "fee is 40")
    (' the fee is 40 ', 1)
    """
    is_long = span.count(" ") + 1 >= _LONG
    return (
        f"{'' if is_long and not span[0].isdigit() else ' '}{span}{'' if is_long and not span[-1].isdigit() else ' '}"
    )


def find_pieces(padded: str, chunk: str) -> list[Piece]:
    """Return the parts of a span that a chunk holds, each cut off by nothing but the border of the chunk.

    >>> fee = bound_text("the fee is 40 euros a year")
    >>> find_pieces(fee, "rules the fee is 40 euros a year in delft")
    [Piece(start=0, end=28, beside=(('rules', 'in delft'),))]
    >>> find_pieces(fee, "rules the fee is 40 euros")
    [Piece(start=0, end=20, beside=(('rules', ''),))]
    >>> find_pieces(fee, "the fee is 40 euros each year")
    []

    Args:
        padded: Bounded text of the span.
        chunk: Normal text of the chunk.
    """
    text = f" {chunk} "
    places: list[Beside] = []
    place = text.find(padded)
    while place >= 0:
        places.append(_cut(text[:place], text[place + len(padded) :]))
        place = text.find(padded, place + 1)
    if places:
        return [Piece(0, len(padded), tuple(places))]
    if len(chunk) < LEAST_PIECE:
        return []
    if (place := padded.find(chunk)) >= 0:
        return [Piece(place, place + len(chunk))]
    pieces = []
    if end := _longest_border(padded, text[:-1], chunk[-_SEED:]):
        pieces.append(Piece(0, end, (_cut(text[: -1 - end], ""),)))
    if length := _longest_border(padded[::-1], text[1:][::-1], chunk[:_SEED][::-1]):
        pieces.append(Piece(len(padded) - length, len(padded), (_cut("", text[1 + length :]),)))
    return pieces


def continues(rest: str, chunk: str) -> bool:
    """Return whether a chunk begins with the rest of a span.

    >>> continues(" a year ", "a year in delft"), continues(" a year ", "a yearly fee")
    (True, False)
    """
    return f"{chunk} ".startswith(rest.lstrip(" "))


def precedes(rest: str, chunk: str) -> bool:
    """Return whether a chunk ends with the beginning of a span."""
    return f" {chunk}".endswith(rest.rstrip(" "))


def join_pieces(pieces: Sequence[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    """Return the gaps that pieces leave in a span of a length, apart from white space.

    >>> join_pieces([(0, 10), (11, 20)], 20), join_pieces([(0, 10), (5, 12)], 20)
    ([], [(12, 20)])
    """
    gaps, reached = [], 0
    for start, end in sorted(pieces):
        if start > reached + _SLIP:
            gaps.append((reached, start))
        reached = max(reached, end)
    return [*gaps, (reached, length)] if reached + _SLIP < length else gaps


def changed_words(span: str, chunk: str) -> tuple[float, str]:
    """Return the share of a span's words that a chunk has in order, and the words that differ.

    >>> changed_words("the fee is 40 euros a year", "from may on the fee is 45 euros a year")
    (0.8571428571428571, "'40' became '45'")
    >>> changed_words("dogs are allowed on board", "dogs are not allowed on board")
    (1.0, "'not' was added")
    """
    before, words = span.split(), chunk.split()
    blocks = [
        block for block in SequenceMatcher(None, before, words, autojunk=False).get_matching_blocks() if block.size
    ]
    kept = sum(block.size for block in blocks)
    return kept / max(len(before), 1), "; ".join(_changes(before, words, blocks)) or "its words stand apart"


def _changes(before: Sequence[str], words: Sequence[str], blocks: Sequence[tuple[int, int, int]]) -> Iterator[str]:
    if not blocks:
        return
    (first, at, _), (last, end, size) = blocks[0], blocks[-1]
    whole = [(0, max(at - first, 0), 0), *blocks, (len(before), end + size + len(before) - last - size, 0)]
    for (a, b, length), (next_a, next_b, _) in pairwise(whole):
        old = " ".join(before[a + length : next_a][:_WORDS_SHOWN])
        new = " ".join(words[b + length : next_b][:_WORDS_SHOWN])
        if old and new:
            yield f"{old!r} became {new!r}"
        elif old or new:
            yield f"{old!r} was removed" if old else f"{new!r} was added"


def _cut(before: str, after: str) -> Beside:
    return before.strip()[-AROUND:], after.strip()[:AROUND]


def _longest_border(span: str, chunk: str, seed: str) -> int:
    """Return the length of the longest beginning of a span that a chunk ends with; 0 if it is too short to count."""
    place = span.rfind(seed)
    while place >= 0:
        length = place + len(seed)
        if length >= LEAST_PIECE and chunk.endswith(span[:length]):
            return length
        place = span.rfind(seed, 0, place + len(seed) - 1)
    return 0
