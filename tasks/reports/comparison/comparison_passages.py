"""Pair the passages of a row in two runs: same, moved, changed, new and gone."""

from collections.abc import Sequence
from typing import Any

from tasks.reports.comparison.word_diff import diff_words, word_similarity
from tasks.reports.truncation import LONGEST_TEXT

ALIKE = 0.5
"""Least similarity of two passages for one to count as a new wording of the other."""

_LONGEST_PASSAGE = LONGEST_TEXT // 4


def passages_side_by_side(a: Sequence[str], b: Sequence[str]) -> list[dict[str, Any]]:
    """Return the passages of both runs, in the order of the second, then those that only the first one has.

    Args:
        a: Passages of the first run, by rank.
        b: Passages of the second run, by rank.

    >>> passages = passages_side_by_side(["x", "y"], ["y", "x"])
    >>> [(passage["rank_a"], passage["rank_b"], passage["kind"]) for passage in passages]
    [(2, 1, 'moved'), (1, 2, 'moved')]
    """
    left = dict(enumerate(a))
    partners: dict[int, int] = {}
    for rank, text in enumerate(b):
        same = next((i for i in sorted(left, key=lambda i: abs(i - rank)) if left[i] == text), None)
        if same is not None:
            partners[rank] = same
            del left[same]
    for rank, text in enumerate(b):
        if rank not in partners and rank in left and word_similarity(left[rank], text) >= ALIKE:
            partners[rank] = rank
            del left[rank]
    passages = [
        _passage((partners[rank], a[partners[rank]]) if rank in partners else None, (rank, b[rank]))
        for rank in range(len(b))
    ]
    return passages + [_passage((rank, text), None) for rank, text in left.items()]


def _passage(a: tuple[int, str] | None, b: tuple[int, str] | None) -> dict[str, Any]:
    text_a, text_b = ((side[1] if side else "")[:_LONGEST_PASSAGE] for side in (a, b))
    pieces_a, pieces_b = diff_words(text_a, text_b) if a and b else (text_a, text_b)
    return {
        "rank_a": a[0] + 1 if a else None,
        "rank_b": b[0] + 1 if b else None,
        "kind": _kind(a, b),
        "a": pieces_a,
        "b": pieces_b,
        "text": text_b or text_a,
        "is_cut": max(len(side[1]) for side in (a, b) if side) > _LONGEST_PASSAGE,
    }


def _kind(a: tuple[int, str] | None, b: tuple[int, str] | None) -> str:
    if a is None or b is None:
        return "gone" if b is None else "new"
    if a[1] != b[1]:
        return "changed"
    return "same" if a[0] == b[0] else "moved"
