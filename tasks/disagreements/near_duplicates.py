"""Find chunks of different documents that say nearly the same, but give another value for something.

Nearly the same are chunks that share most of the smallest digests of their sequences of words, numbers left out.

Source: Broder, "On the resemblance and containment of documents" (1997), sketches of fixed size.
"""

import re
import zlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from metric_core.disagreements.conflicts import Disagreement, find_disagreements
from tasks.sources.anchoring.span_places import Chunk
from tasks.sources.chunk_file import IndexChunk
from tasks.sources.index_checks import MOST_EXAMPLES, IndexFinding

MOST_CHUNKS = 100_000
"""Chunks whose texts are kept for the comparison."""
MOST_PAIRS = 20_000
"""Pairs of chunks that are compared statement by statement."""
_SKETCH, _LEAST_SHARED = 8, 5
_MOST_ALIKE = 64
"""Digests of more chunks than these are boilerplate."""
_WORD = re.compile(r"[^\W\d_]+")
_MIX = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)

_Digests = npt.NDArray[np.uint64]


class NearDuplicates:
    """The check for chunks that disagree: it keeps the chunks and their sketches, and compares them at the end."""

    def __init__(self) -> None:
        self._chunks: list[Chunk] = []
        self._sketches: list[_Digests] = []
        self._words: dict[str, int] = {}
        self._seen = 0

    def add(self, chunk: IndexChunk) -> None:
        """Keep a chunk with at least as many different sequences of words as a sketch has digests."""
        self._seen += 1
        if len(self._chunks) == MOST_CHUNKS:
            return
        known = self._words
        words = [known.get(word) or self._digest(word) for word in _WORD.findall(chunk.chunk.text.lower())]
        digests = np.array(words, np.uint64)
        grams = np.unique((digests[:-2] * _MIX[0] + digests[1:-1] * _MIX[1] + digests[2:]) * _MIX[2])
        if len(grams) >= _SKETCH:
            self._chunks.append(chunk.chunk)
            self._sketches.append(grams[:_SKETCH])

    def findings(self) -> Iterator[IndexFinding]:
        """Yield the pairs of chunks that disagree, as one finding; none if there is no pair."""
        found = [(pair, each[0]) for pair in self._pairs()[:MOST_PAIRS] if (each := self._compare(*pair))]
        if not found:
            return
        alike = "pairs of nearly the same chunks of different documents have another value for something"
        cut = f"; only the first {MOST_CHUNKS:,} chunks were compared" if self._seen > MOST_CHUNKS else ""
        yield IndexFinding(
            kind="disagreeing",
            count=len(found),
            of=self._seen,
            things="chunks",
            sentence=f"{len(found):,} {alike}{cut}",
            examples=tuple(self._example(*pair, each) for pair, each in found[:MOST_EXAMPLES]),
        )

    def _digest(self, word: str) -> int:
        return self._words.setdefault(word, zlib.crc32(word.encode(errors="surrogatepass")) | 1)

    def _pairs(self) -> list[tuple[int, int]]:
        """Return the pairs of chunks of different documents that share most of their digests, the most alike first."""
        if not self._sketches:
            return []
        digests = np.concatenate(self._sketches)
        order = np.argsort(digests, kind="stable")
        owners = order // _SKETCH
        starts = np.flatnonzero(np.diff(digests[order], prepend=digests[order[0]] - np.uint64(1)))
        keys: list[npt.NDArray[np.int64]] = []
        for start, end in zip(starts, [*starts[1:], len(owners)], strict=True):
            if 1 < end - start <= _MOST_ALIKE:
                group = np.sort(owners[start:end])
                first, second = np.triu_indices(len(group), 1)
                keys.append(group[first] * len(self._chunks) + group[second])
        if not keys:
            return []
        pairs, shared = np.unique(np.concatenate(keys), return_counts=True)
        ranked = pairs[np.argsort(-shared, kind="stable")][: int((shared >= _LEAST_SHARED).sum())]
        places = (divmod(int(pair), len(self._chunks)) for pair in ranked)
        return [(one, other) for one, other in places if self._are_apart(self._chunks[one], self._chunks[other])]

    def _are_apart(self, one: Chunk, other: Chunk) -> bool:
        return one.text != other.text and (one.document is None or one.document != other.document)

    def _compare(self, one: int, other: int) -> list[Disagreement]:
        return find_disagreements([self._chunks[one].text, self._chunks[other].text])

    def _example(self, one: int, other: int, found: Disagreement) -> str:
        return f"{self._chunks[one].id} ({found.one.part}) and {self._chunks[other].id} ({found.other.part})"
