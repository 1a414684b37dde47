"""Decide what became of spans of evidence in the chunks of an index: carried, edited, uncertain or lost.

A span is carried only if chunks of its document hold all its words, cut by nothing but the borders of chunks. A near
match is never carried: it shows that the evidence was edited, and how.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from metric_core.evidence_spans import EvidenceSpan, PlacedSpan, SpanPart, SpanState, digest_text
from tasks.sources.anchoring.span_index import WORDS, SpanIndex
from tasks.sources.anchoring.span_text import (
    Piece,
    bound_text,
    changed_words,
    continues,
    find_pieces,
    join_pieces,
    normal_text,
    precedes,
)

LEAST_NEAR = 0.6
"""Least share of a span's words that a chunk has in order if it holds a changed form of the span."""
LEAST_RIVAL = 0.8
"""Least such share of a place that may be that of the span, changed, although its words are at another place, too."""
_BATCH = 1000
_NEAR_KEPT = 3
_ELSEWHERE_KEPT = 64
"""Pieces of a span in documents that are not its own: a few show that its words are there, too."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk of an index.

    Args:
        document: Id of the document that it is cut from; None if it is not known.
        start: Position of its first character in the document; None if it is not known.
        end: Position after its last character; None if it is not known.
        title: Title of its section; None if it is not known.
    """

    id: str
    text: str
    document: str | None = None
    start: int | None = None
    end: int | None = None
    title: str | None = None

    @property
    def digest(self) -> str:
        """Digest of its text."""
        return digest_text(self.text)


@dataclass(frozen=True, slots=True)
class _Found:
    piece: Piece
    chunk: Chunk
    share: float


@dataclass(frozen=True, slots=True, order=True)
class _Near:
    shared: float
    text: str
    chunk: Chunk = field(compare=False)
    is_cut: bool = field(compare=False)
    """True if the border of the chunk cuts the span."""


@dataclass(slots=True)
class _Finds:
    """Matches of one text in the chunks.

    Args:
        text: Normal text.
        bounded: Bounded text.
        documents: Documents of the spans with this text.
        near: Best matches that are not exact, by document of `documents`, None for all others.
    """

    text: str
    bounded: str
    documents: set[str | None] = field(default_factory=set)
    exact: dict[tuple[str, int], _Found] = field(default_factory=dict)
    near: dict[str | None, list[_Near]] = field(default_factory=dict)

    def add(self, chunk: Chunk, size: int, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            is_own = chunk.document is not None and chunk.document in self.documents
            if is_own or len(self.exact) < _ELSEWHERE_KEPT:
                share = min((piece.end - piece.start) / (size + 2), 1.0)
                self.exact[chunk.id, piece.start] = _Found(piece, chunk, share)

    def add_near(self, near: _Near) -> None:
        document = near.chunk.document
        best = self.near.setdefault(document if document in self.documents else None, [])
        best.append(near)
        best.sort(reverse=True)
        del best[_NEAR_KEPT:]


class SpanPlaces:
    """The places of spans in the chunks of an index.

    Args:
        spans: The spans to find.
        is_complete: True if all chunks of the index are read; False for the passages that happened to be retrieved.

    >>> places = SpanPlaces([fee := EvidenceSpan("The fee is 40 euros a year."), EvidenceSpan("Lunch is free here.")])
    >>> places.read([Chunk("1", "Rules. The fee is 45 euros a year."), Chunk("2", "Closed on Mondays.")])
    >>> places.place(fee).state, places.place(fee).change
    (<SpanState.EDITED: 'edited'>, "'40' became '45'")
    """

    def __init__(self, spans: Iterable[EvidenceSpan], *, is_complete: bool = True) -> None:
        self._is_complete = is_complete
        self._finds: dict[str, _Finds] = {}
        for span in spans:
            text = normal_text(span.text)
            self._finds.setdefault(text, _Finds(text, bound_text(text))).documents.add(span.document)
        self._numbered = tuple(self._finds.values())
        self._index = SpanIndex([finds.text for finds in self._numbered])
        self._wanted = {document for finds in self._numbered for document in finds.documents}
        self._documents: set[str] = set()
        self._has_documents = False

    def read(self, chunks: Iterable[Chunk]) -> None:
        """Search chunks, of which neighbours follow one another."""
        for window in _windows(chunks):
            texts = [normal_text(chunk.text) for chunk in window]
            documents = {chunk.document for chunk in window if chunk.document is not None}
            self._has_documents = self._has_documents or bool(documents)
            self._documents |= documents & self._wanted
            for place, text in enumerate(texts):
                if (finds := self._finds.get(text)) is not None and _is_short(text):
                    finds.add(window[place], len(text), [Piece(0, len(finds.bounded))])
            for candidate in self._index.find(texts):
                self._compare(self._numbered[candidate.span], window, texts, candidate.chunk, candidate.shared)

    def place(self, span: EvidenceSpan) -> PlacedSpan:
        """Return a span with its place in the chunks that were read."""
        finds = self._finds[normal_text(span.text)]
        length = len(finds.bounded)
        found = list(finds.exact.values())
        is_known = span.document is not None and self._has_documents
        own = [each for each in found if each.chunk.document == span.document] if is_known else found
        if not _gaps(own, length):
            own = _at_offsets(own, span, length)
            doubt = _find_doubt(span, own, finds.near.get(span.document, ()) if is_known else (), finds.text)
            return _carried(span, own, length) if doubt is None else PlacedSpan(span, SpanState.UNCERTAIN, change=doubt)
        if is_known and not _gaps(found, length):
            other = next(each.chunk.document for each in found if each not in own)
            return PlacedSpan(span, SpanState.UNCERTAIN, change=f"its words are in another document, {other!r}")
        if not self._is_complete and own:
            return _carried(span, own, length)
        if _is_short(finds.text) and self._is_complete:
            return PlacedSpan(span, SpanState.UNCERTAIN, change=f"fewer than {WORDS} words, which may be anywhere")
        return self._without_place(span, finds, is_known=is_known, has_part=bool(own))

    def _without_place(self, span: EvidenceSpan, finds: _Finds, *, is_known: bool, has_part: bool) -> PlacedSpan:
        everywhere = [each for best in finds.near.values() for each in best]
        near = finds.near.get(span.document, []) if is_known else everywhere
        matches = ((*changed_words(finds.text, each.text), each.chunk.id) for each in near)
        share, change, chunk = max(matches, default=(0.0, "", ""))
        if share >= LEAST_NEAR:
            return PlacedSpan(span, SpanState.EDITED, change=change, near=chunk)
        if not self._is_complete:
            return PlacedSpan(span, SpanState.UNSEEN)
        if has_part:
            return PlacedSpan(span, SpanState.EDITED, change="a part of it is gone")
        if is_known and span.document in self._documents:
            return PlacedSpan(span, SpanState.EDITED, change="its document no longer says so in these words")
        return PlacedSpan(span, SpanState.LOST)

    def _compare(self, finds: _Finds, window: Sequence[Chunk], texts: Sequence[str], place: int, shared: float) -> None:
        pieces = find_pieces(finds.bounded, texts[place])
        finds.add(window[place], len(texts[place]), pieces)
        length = len(finds.bounded)
        if not any(piece.end - piece.start == length for piece in pieces):
            finds.add_near(_Near(shared, texts[place], window[place], is_cut=bool(pieces)))
        for piece in pieces if self._is_complete else ():
            if piece.end < length and place + 1 < len(window):
                self._add_rest(finds, window[place + 1], texts[place + 1], piece.end, length)
            if piece.start > 0 and place > 0:
                self._add_rest(finds, window[place - 1], texts[place - 1], 0, piece.start)

    def _add_rest(self, finds: _Finds, chunk: Chunk, text: str, start: int, end: int) -> None:
        """Add the rest of a span that the border of a chunk cuts, if its neighbour holds it, however short it is."""
        rest = finds.bounded[start:end]
        pieces = find_pieces(finds.bounded, text)
        if not pieces and (precedes(rest, text) if start == 0 else continues(rest, text)):
            pieces = [Piece(start, end)]
        finds.add(chunk, len(text), pieces)


def _is_short(text: str) -> bool:
    """Return whether a normal text is too short to be found in a longer one."""
    return text.count(" ") + 1 < WORDS


def _windows(chunks: Iterable[Chunk]) -> Iterator[list[Chunk]]:
    """Yield chunks in batches that begin with the last two chunks of the batch before, so that neighbours meet."""
    window: list[Chunk] = []
    for chunk in chunks:
        window.append(chunk)
        if len(window) == _BATCH:
            yield window
            window = window[-2:]
    yield window


def _gaps(found: Iterable[_Found], length: int) -> list[tuple[int, int]]:
    return join_pieces([(each.piece.start, each.piece.end) for each in found], length)


def _at_offsets(found: list[_Found], span: EvidenceSpan, length: int) -> list[_Found]:
    """Return the pieces in chunks that are where the span was, if they hold all of it; else all pieces."""
    if span.start is None or span.end is None:
        return found
    there = [
        each
        for each in found
        if each.chunk.start is not None and each.chunk.end is not None
        if each.chunk.start < span.end and span.start < each.chunk.end
    ]
    return found if _gaps(there, length) else there


def _find_doubt(span: EvidenceSpan, found: Sequence[_Found], near: Iterable[_Near], text: str) -> str | None:
    """Return the reason why words may not be the span; None if they are at one place, and no other may be its own.

    Args:
        near: Changed forms of the span in its document.
        text: Normal text of the span.
    """
    if (places := _count_places(found)) > 1:
        return f"its words are in {places} places or more"
    distance = min(_distance(each.chunk, span) for each in found)
    for each in near:
        if not each.is_cut and _distance(each.chunk, span) <= distance:
            share, change = changed_words(text, each.text)
            if share >= LEAST_RIVAL:
                return f"perhaps edited, and repeated elsewhere: {change}"
    return None


def _distance(chunk: Chunk, span: EvidenceSpan) -> int:
    """Return the number of characters between a chunk and the place where a span was; 0 if that is not known."""
    if chunk.start is None or chunk.end is None or span.start is None or span.end is None:
        return 0
    return max(chunk.start - span.end, span.start - chunk.end, 0)


def _count_places(found: Collection[_Found]) -> int:
    """Return the number of places that pieces are certainly at, at least one."""
    places: list[Piece] = []
    for each in found:
        if not any(each.piece.is_at(place) for place in places):
            places.append(each.piece)
    return max(len(places), 1)


def _carried(span: EvidenceSpan, found: Iterable[_Found], length: int) -> PlacedSpan:
    parts = (SpanPart(each.chunk.id, each.piece.start / length, each.piece.end / length, each.share) for each in found)
    return PlacedSpan(span, SpanState.CARRIED, tuple(parts))
