"""Find the texts of an index that are nearest to others: by the embedder of a run, and by their words."""

import re
from collections import Counter
from collections.abc import Sequence
from math import log

import numpy as np
from numpy.typing import NDArray

from tasks.models.embedders.protocol import Embedder

_AT_ONCE = 512
"""Texts that are compared with all others at once."""

_K1, _B = 1.2, 0.75

DUPLICATE = 0.96
"""Cosine from which two questions count as the same."""


class Neighbours:
    """Texts with their vectors.

    Args:
        embedder: Model that embeds them.
    """

    def __init__(self, embedder: Embedder, texts: Sequence[str]) -> None:
        self._embedder = embedder
        self._vectors = _unit(embedder, texts)

    def nearest(self, texts: Sequence[str], most: int) -> list[list[int]]:
        """Return the positions of the nearest texts for each of some texts, nearest first.

        Args:
            most: Number of positions for each.
        """
        found: list[list[int]] = []
        for start in range(0, len(texts), _AT_ONCE):
            cosines = _unit(self._embedder, texts[start : start + _AT_ONCE]) @ self._vectors.T
            found += [np.argsort(-row, kind="stable")[:most].tolist() for row in cosines]
        return found


class WordSearch:
    """Texts ranked by BM25, with the usual constants.

    >>> WordSearch(["It rains in Delft.", "The shop opens at nine.", "The shop is in Delft."]).best("Delft shop?", 2)
    [2, 0]
    """

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [Counter(_words(text)) for text in texts]
        lengths = np.array([words.total() for words in counts])
        self._norms = _K1 * (1 - _B + _B * lengths / max(lengths.mean(), 1))
        self._found: dict[str, list[tuple[int, int]]] = {}
        for place, words in enumerate(counts):
            for word, count in words.items():
                self._found.setdefault(word, []).append((place, count))

    def best(self, question: str, most: int) -> list[int]:
        """Return the positions of the best texts, best first; fewer if fewer share a word."""
        scores: dict[int, float] = {}
        for word in dict.fromkeys(_words(question)):
            found = self._found.get(word, ())
            rarity = log(1 + (len(self._norms) - len(found) + 0.5) / (len(found) + 0.5))
            for place, count in found:
                gain = rarity * count * (_K1 + 1) / (count + self._norms[place])
                scores[place] = scores.get(place, 0.0) + float(gain)
        return sorted(scores, key=lambda place: (-scores[place], place))[:most]


def find_duplicates(embedder: Embedder, kept: Sequence[str], new: Sequence[str]) -> list[bool]:
    """Return for each new text whether it nearly repeats a kept one, or an earlier new one that repeats none."""
    if not new:
        return []
    vectors = _unit(embedder, [*kept, *new])
    count = len(kept)  # the first so many vectors are those of texts that repeat none
    repeats: list[bool] = []
    for vector in vectors[count:].copy():
        is_repeat = count > 0 and float((vectors[:count] @ vector).max()) >= DUPLICATE
        repeats.append(is_repeat)
        if not is_repeat:
            vectors[count] = vector
            count += 1
    return repeats


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _unit(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    if not texts:
        return np.zeros((0, embedder.identity.dimensions), np.float32)
    vectors = embedder.embed(texts)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
