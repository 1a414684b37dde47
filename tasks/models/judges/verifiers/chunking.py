"""Divide premises and claims into parts that fit into the window of a verifier, without losing a character.

Tokens are counted before a request is sent, because some servers cut a long prompt without an error. A text of at most
as many bytes as there is room for tokens needs no count: no tokenizer makes more tokens than bytes.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from tasks.models.recognizers.scripts import SENTENCE_ENDS

CountTokens: TypeAlias = Callable[[Sequence[str]], list[int]]
"""Returns the number of tokens of each text, without special ones, or an upper bound."""

_SENTENCE = re.compile(rf"(?<=[.!?])\s+|(?<=[{SENTENCE_ENDS}])\s*|\n+")
_SLACK = 1.05
"""Parts of a text have more tokens per byte than the whole; a part that is still too long is divided again."""

_LARGEST_PIECE = 1 / 16
"""Share of a part that the pieces of a sentence have which is longer than a part; they end at spaces."""


def size(text: str) -> int:
    """Return the number of bytes of a text, which is an upper bound of its tokens.

    >>> size("\u00e9tui")
    5
    """
    return len(text.encode("utf-8", "replace"))


def divide_texts(budgets: Mapping[str, int], count: CountTokens, overlap: float = 0.0) -> dict[str, tuple[str, ...]]:
    """Return the parts of each text, in order, none longer than its budget.

    Parts end at the ends of sentences where they can. Each begins with what ended the part before it, up to a share.

    Args:
        budgets: Text -> largest number of tokens of a part, at least 1.
        overlap: Share of a part that the next one repeats, at most one half.

    >>> divide_texts({"One two. Three four. Five six.": 3}, lambda texts: [len(text.split()) for text in texts])
    {'One two. Three four. Five six.': ('One two.', 'Three four.', 'Five six.')}
    """
    parts: dict[str, tuple[str, ...]] = {text: (text,) for text in budgets}
    open_parts = [(text, text, budget) for text, budget in budgets.items() if size(text) > budget]
    done: dict[tuple[str, str], tuple[str, ...]] = {}
    while open_parts:
        counts = count([part for _, part, _ in open_parts])
        long = [
            (text, part, budget, tokens)
            for (text, part, budget), tokens in zip(open_parts, counts, strict=True)
            if tokens > budget
        ]
        open_parts = []
        for text, part, budget, tokens in long:
            smaller = _divide(part, tokens, budget, overlap)
            if len(smaller) < 2:
                continue  # a single character that takes several tokens
            done[text, part] = smaller
            open_parts += [(text, each, budget) for each in dict.fromkeys(smaller) if size(each) > budget]
    for text in budgets:
        parts[text] = tuple(_resolve(text, text, done))
    return parts


def _resolve(text: str, part: str, done: Mapping[tuple[str, str], tuple[str, ...]]) -> list[str]:
    smaller = done.get((text, part))
    if smaller is None:
        return [part]
    return [each for one in smaller for each in _resolve(text, one, done)]


def _divide(text: str, tokens: int, budget: int, overlap: float) -> tuple[str, ...]:
    """Return the parts of a text that is too long: more than one, unless it is a single character."""
    room = budget / (_SLACK * tokens) * len(text)  # characters of a part
    pieces = _pieces(text, room)
    parts: list[str] = []
    first = 0
    while first < len(pieces):
        last = first + 1
        while last < len(pieces) and pieces[last][1] - pieces[first][0] <= room:
            last += 1
        if last == len(pieces) and first == 0 and len(pieces) > 1:
            last -= 1  # the estimate was wrong: the text is known to be too long
        parts.append(text[pieces[first][0] : pieces[last - 1][1]].strip())
        if last >= len(pieces):
            break
        following = last
        while following - 1 > first and pieces[last - 1][1] - pieces[following - 1][0] <= overlap * room:
            following -= 1
        first = following
    return tuple(part for part in parts if part)


def _pieces(text: str, room: float) -> list[tuple[int, int]]:
    """Return the positions of the sentences of a text; one longer than `room` is divided at spaces, or anywhere."""
    longest = max(int(room * _LARGEST_PIECE), 1)
    pieces: list[tuple[int, int]] = []
    start = 0
    for end in [*(match.end() for match in _SENTENCE.finditer(text)), len(text)]:
        is_long = end - start > max(room, 1)
        while is_long and end - start > longest:
            space = max(text.rfind(" ", start + 1, start + longest), text.rfind("\n", start + 1, start + longest))
            cut = space + 1 if space > start else start + longest
            pieces.append((start, cut))
            start = cut
        if end > start:
            pieces.append((start, end))
            start = end
    return pieces
