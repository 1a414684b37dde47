"""An inverted index of the word n-grams of spans: which chunks may hold which span, or a changed form of it.

The spans are indexed and the chunks stream by, because there are many more chunks. Memory grows with the words of the
spans alone; time with the words of the chunks, times the logarithm of the number of grams, and with the pairs found.

Source of the measure: Broder, "On the resemblance and containment of documents" (1997), containment of shingles.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

WORDS = 3
"""Words of a gram."""
LEAST_SHARED = 0.2
"""Least share of the grams of the shorter text, span or chunk, that the other has if one may hold the other."""
_MOST_SPANS = 64
"""Grams of more spans than these are boilerplate, and only count for spans with few others."""
_FEWEST_GRAMS = 8
_BITS = 21
"""Bits of the number of a word in a gram: spans may have two million distinct words."""

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that may hold a span.

    Args:
        chunk: Index of the chunk among those that were searched.
        span: Index of the span.
        shared: Share of the grams of the shorter text that the other has.
    """

    chunk: int
    span: int
    shared: float


class SpanIndex:
    """The grams of spans, by which chunks find the spans that they may hold.

    >>> index = SpanIndex(["the fee is 40 euros a year", "lunch is free on mondays"])
    >>> [(each.chunk, each.span) for each in index.find(["it rains", "since may the fee is 45 euros a year"])]
    [(1, 0)]

    Args:
        spans: Normal texts of the spans; see `span_text.normal_text`. A shorter span than `WORDS` is not found.
    """

    def __init__(self, spans: Sequence[str]) -> None:
        self._numbers: dict[str, int] = {}
        numbers = self._numbers
        texts = [[numbers.setdefault(word, len(numbers) + 1) for word in span.split()] for span in spans]
        grams, owners = self._grams(texts)
        pairs = np.unique(np.stack([grams, owners]), axis=1)
        grams, owners = pairs[0], pairs[1]
        _, inverse, spans_with = np.unique(grams, return_inverse=True, return_counts=True)
        is_kept = _rare_enough(owners, spans_with[inverse], len(spans))
        self._keys, first = np.unique(grams[is_kept], return_index=True)
        self._owners = owners[is_kept]
        self._ends = np.append(first[1:], len(self._owners)) if len(first) else first
        self._starts = first
        self._sizes = np.bincount(self._owners, minlength=len(spans))

    def find(self, chunks: Sequence[str]) -> Iterator[Candidate]:
        """Yield the spans that each chunk may hold, chunk by chunk.

        Args:
            chunks: Normal texts of the chunks.
        """
        if not len(self._keys):
            return
        known = self._numbers.get
        grams, owners = self._grams([[known(word, 0) for word in chunk.split()] for chunk in chunks])
        if not len(grams):
            return
        sizes = np.asarray([max(chunk.count(" ") + 2 - WORDS, 1) for chunk in chunks])
        places = np.minimum(np.searchsorted(self._keys, grams), len(self._keys) - 1)
        is_hit = self._keys[places] == grams
        hits = np.unique(owners[is_hit] * len(self._keys) + places[is_hit])
        in_chunk, places = np.divmod(hits, len(self._keys))
        counts = self._ends[places] - self._starts[places]
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        found = self._owners[np.repeat(self._starts[places], counts) + offsets]
        pairs, shared = np.unique(np.repeat(in_chunk, counts) * len(self._sizes) + found, return_counts=True)
        numbers, spans = np.divmod(pairs, len(self._sizes))
        shares = shared / np.minimum(self._sizes[spans], sizes[numbers])
        for place in np.flatnonzero(shares >= LEAST_SHARED):
            yield Candidate(int(numbers[place]), int(spans[place]), min(float(shares[place]), 1.0))

    def _grams(self, texts: Sequence[Sequence[int]]) -> tuple[_Numbers, _Numbers]:
        """Return the grams of texts of numbered words without those with a 0, each with the index of its text."""
        lengths = np.asarray([len(text) for text in texts], np.int64)
        words = np.fromiter((word for text in texts for word in text), np.int64, int(lengths.sum()))
        owners = np.repeat(np.arange(len(texts)), lengths)
        if len(words) < WORDS:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        last = len(words) - WORDS + 1
        columns = [words[offset : last + offset] for offset in range(WORDS)]
        is_gram = owners[:last] == owners[WORDS - 1 :]
        for column in columns:
            is_gram &= column > 0
        grams = np.zeros(last, np.int64)
        for column in columns:
            grams = (grams << _BITS) | column
        return grams[is_gram], owners[:last][is_gram]


def _rare_enough(owners: _Numbers, spans_with: _Numbers, spans: int) -> npt.NDArray[np.bool_]:
    """Return the grams that count for each span: those that few spans share, and in any case its rarest."""
    order = np.lexsort((spans_with, owners))
    sizes = np.bincount(owners, minlength=spans)
    rank = np.empty(len(owners), np.int64)
    rank[order] = np.arange(len(owners)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    is_kept: npt.NDArray[np.bool_] = (spans_with <= _MOST_SPANS) | (rank < _FEWEST_GRAMS)
    return is_kept
