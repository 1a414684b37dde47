"""Find chunks of different documents that say nearly the same, but give another value for something.

Nearly the same are chunks most of whose sequences of three words are the same, numbers left out: estimated by the least
digests of the sequences under several permutations.

Source: Broder, "On the resemblance and containment of documents" (1997).
"""

import re
import zlib
from collections.abc import Iterator, Sequence

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
_BAND, _BANDS, _LEAST_SHARED = 3, 3, 6
"""Digests of a band, bands, and digests that two chunks have in common, and all of one band, if they are compared."""
_MOST_ALIKE = 64
"""Bands of more chunks than these are boilerplate."""
_FEWEST_GRAMS = 8
_WORD = re.compile(r"[^\W\d_]+")
_MIX = np.random.default_rng(7).integers(0, 2**63, 3 + _BAND * _BANDS, np.uint64) | np.uint64(1)
_WORDS, _PERMUTATIONS = _MIX[:3], _MIX[3:]

_Digests = npt.NDArray[np.uint64]


class NearDuplicates:
    """The check for chunks that disagree: it keeps the chunks and their sketches, and compares them at the end."""

    kinds: Sequence[str] = ("disagreeing",)

    def __init__(self) -> None:
        self._chunks: list[Chunk] = []
        self._sketches: list[_Digests] = []
        self._words: dict[str, int] = {}
        self._seen = 0
        self._has_more = False

    def add(self, chunk: IndexChunk) -> None:
        """Keep a chunk of more than a few words."""
        self._seen += 1
        if len(self._chunks) == MOST_CHUNKS:
            self._has_more = True
            return
        known = self._words
        words = [known.get(word) or self._digest(word) for word in _WORD.findall(chunk.chunk.text.lower())]
        if len(words) >= _FEWEST_GRAMS + 2:
            digests = np.array(words, np.uint64)
            grams = digests[:-2] * _WORDS[0] + digests[1:-1] * _WORDS[1] + digests[2:] * _WORDS[2]
            self._chunks.append(chunk.chunk)
            self._sketches.append((grams[:, None] * _PERMUTATIONS).min(axis=0))

    def findings(self) -> Iterator[IndexFinding]:
        """Yield the pairs of chunks that disagree, as one finding; none if all chunks were compared and none do."""
        found = [(pair, each[0]) for pair in self._pairs()[:MOST_PAIRS] if (each := self._compare(*pair))]
        if not found and not self._has_more:
            return
        count = {0: "no pair", 1: "1 pair"}.get(len(found), f"{len(found):,} pairs")
        alike = "of nearly the same chunks of different documents, with another value for something"
        cut = (
            f"; only the first {MOST_CHUNKS:,} chunks of more than a few words were compared" if self._has_more else ""
        )
        yield IndexFinding(
            kind=self.kinds[0],
            count=len(found),
            of=self._seen,
            things="chunks",
            sentence=f"{count} {alike}{cut}",
            examples=tuple(self._example(*pair, each) for pair, each in found[:MOST_EXAMPLES]),
        )

    def _digest(self, word: str) -> int:
        return self._words.setdefault(word, zlib.crc32(word.encode(errors="surrogatepass")) | 1)

    def _pairs(self) -> list[tuple[int, int]]:
        """Return the pairs of chunks of different documents that are nearly the same, the most alike first."""
        count = len(self._chunks)
        sketches = np.array(self._sketches, np.uint64).reshape(count, _BANDS, _BAND)
        bands = (sketches * _WORDS).sum(axis=2, dtype=np.uint64)
        keys = [np.zeros(0, np.int64)]
        for band in bands.T:
            order = np.argsort(band, kind="stable")
            starts = np.flatnonzero(np.append(True, band[order][1:] != band[order][:-1]))
            ends = np.append(starts[1:], count)
            for start, end in zip(starts, ends, strict=True):
                if 1 < end - start <= _MOST_ALIKE:
                    group = np.sort(order[start:end])
                    first, second = np.triu_indices(len(group), 1)
                    keys.append(group[first] * count + group[second])
        one, other = np.divmod(np.unique(np.concatenate(keys)), max(count, 1))
        shared = (sketches[one] == sketches[other]).sum(axis=(1, 2))
        ranked = np.argsort(-shared, kind="stable")[: int((shared >= _LEAST_SHARED).sum())]
        pairs = zip(one[ranked].tolist(), other[ranked].tolist(), strict=True)
        return [pair for pair in pairs if self._are_apart(*(self._chunks[place] for place in pair))]

    def _are_apart(self, one: Chunk, other: Chunk) -> bool:
        return one.text != other.text and (one.document is None or one.document != other.document)

    def _compare(self, one: int, other: int) -> list[Disagreement]:
        return find_disagreements([self._chunks[one].text, self._chunks[other].text])

    def _example(self, one: int, other: int, found: Disagreement) -> str:
        return f"{self._chunks[one].id} ({found.one.part}) and {self._chunks[other].id} ({found.other.part})"
