"""Decide what became of spans of evidence in the chunks of an index: carried, edited, uncertain or lost.

A span is carried only if chunks of its document hold all its words, cut by nothing but the borders of chunks. A near
match is never carried: it shows that the evidence was edited, and how. Where documents are not known, or hold the words
more than once, the words beside a span say which place is its own.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from metric_core.evidence_spans import EvidenceSpan, PlacedSpan, SpanPart, SpanState, digest_text
from tasks.sources.anchoring.span_index import WORDS, SpanIndex
from tasks.sources.anchoring.span_text import (
    AROUND,
    LEAST_PIECE,
    Beside,
    Piece,
    bound_text,
    changed_words,
    continues,
    count_equal_sides,
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
_SHARED = 2
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
    """A part of a span in a chunk.

    Args:
        number: Number of the chunk among all that were read.
        share: Share of the chunk that the part makes up.
        beside: Words before and after the span, those of neighbouring chunks too.
    """

    piece: Piece
    chunk: Chunk
    number: int
    share: float
    beside: tuple[Beside, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    """A place of a span: a chunk that holds all of it, or neighbours that hold it together.

    Args:
        parts: Parts that hold it, and those that overlapping chunks hold too.
        whole: Those that hold it.
    """

    parts: Sequence[_Found]
    whole: Sequence[_Found]

    def is_other(self, place: "_Place") -> bool:
        """Return whether this is certainly another place: no words beside both are the same."""
        others = place.beside(is_joined=False)
        return all(count_equal_sides(one, each) == 0 for one in self.beside(is_joined=False) for each in others)

    def equal_sides(self, span: EvidenceSpan) -> int | None:
        """Return on how many sides the words beside it are those that a span stood among; None if that is not known."""
        known = normal_text(span.before), normal_text(span.after)
        found = [count_equal_sides(known, each) for each in self.beside(is_joined=True)]
        return max((count for count in found if count is not None), default=None)

    def beside(self, *, is_joined: bool) -> list[Beside]:
        """Return the words beside it in its chunks, or, joined, in their neighbours too."""
        found = [part.beside if is_joined else part.piece.beside for part in self.whole]
        return list(found[0]) if len(found) == 1 else [(found[0][0][0], found[-1][0][1])]


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

    def add(self, window: "_Window", place: int, pieces: Iterable[Piece]) -> None:
        chunk = window.chunks[place]
        for piece in pieces:
            is_own = chunk.document is not None and chunk.document in self.documents
            if is_own or len(self.exact) < _ELSEWHERE_KEPT:
                share = min((piece.end - piece.start) / (len(window.texts[place]) + 2), 1.0)
                beside = window.beside(place, piece, len(self.bounded))
                self.exact[chunk.id, piece.start] = _Found(piece, chunk, window.first + place, share, beside)

    @property
    def everywhere(self) -> list[_Near]:
        """Best matches of all documents that are not exact."""
        return [each for best in self.near.values() for each in best]

    def add_near(self, near: _Near) -> None:
        document = near.chunk.document
        best = self.near.setdefault(document if document in self.documents else None, [])
        best.append(near)
        best.sort(reverse=True)
        del best[_NEAR_KEPT:]


@dataclass(frozen=True, slots=True)
class _Window:
    """Chunks that follow one another, with their normal texts.

    Args:
        first: Number of the first one among all that are read.
    """

    first: int
    chunks: Sequence[Chunk]
    texts: Sequence[str]

    def beside(self, place: int, piece: Piece, length: int) -> tuple[Beside, ...]:
        """Return the words before and after a span of a length that a chunk holds a part of."""
        last = self._text_beside(place, place - 1) if piece.start == 0 else ""
        first = self._text_beside(place, place + 1) if piece.end == length else ""
        return tuple(
            (f"{last} {before}".strip()[-AROUND:], f"{after} {first}".strip()[:AROUND])
            for before, after in piece.beside
        )

    def _text_beside(self, place: int, neighbour: int) -> str:
        is_there = 0 <= neighbour < len(self.chunks)
        return (
            self.texts[neighbour] if is_there and self.chunks[neighbour].document == self.chunks[place].document else ""
        )


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
        """Search chunks in which neighbours are adjacent."""
        for window in _windows(chunks):
            documents = {chunk.document for chunk in window.chunks if chunk.document is not None}
            self._has_documents = self._has_documents or bool(documents)
            self._documents |= documents & self._wanted
            for place, text in enumerate(window.texts):
                if (finds := self._finds.get(text)) is not None and _is_short(text):
                    finds.add(window, place, [Piece(0, len(finds.bounded))])
            for candidate in self._index.find(window.texts):
                if (
                    candidate.chunk or not window.first
                ):  # else it was compared in the window before, with both neighbours
                    self._compare(self._numbered[candidate.span], window, candidate.chunk, candidate.shared)

    def place(self, span: EvidenceSpan) -> PlacedSpan:
        """Return a span with its place in the chunks that were read."""
        finds = self._finds[normal_text(span.text)]
        length = len(finds.bounded)
        found = list(finds.exact.values())
        is_known = span.document is not None and self._has_documents
        own = [each for each in found if each.chunk.document == span.document] if is_known else found
        if not _gaps(own, length):
            own = _at_offsets(own, span, length)
            places, is_elsewhere = _among_words(_places(own, length, self._is_complete), span)
            own = list(dict.fromkeys(part for place in places for part in place.parts))
            near = finds.near.get(span.document, ()) if is_known else _near_words(finds.everywhere, span)
            is_certain = [place.equal_sides(span) for place in places] == [2]  # between its own words
            doubt = None if is_certain else _find_doubt(span, places, near, finds.text)
            doubt = "other words stand beside it than before" if is_elsewhere and not is_known else doubt
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
        near = finds.near.get(span.document, []) if is_known else finds.everywhere
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

    def _compare(self, finds: _Finds, window: _Window, place: int, shared: float) -> None:
        chunk, text = window.chunks[place], window.texts[place]
        pieces = find_pieces(finds.bounded, text)
        finds.add(window, place, pieces)
        length = len(finds.bounded)
        if not any(piece.end - piece.start == length for piece in pieces):
            finds.add_near(_Near(shared, text, chunk, is_cut=bool(pieces)))
        for piece in pieces if self._is_complete else ():
            if piece.end < length and place + 1 < len(window.chunks):
                self._add_rest(finds, window, place + 1, piece.end, length)
            if piece.start > 0 and place > 0:
                self._add_rest(finds, window, place - 1, 0, piece.start)

    def _add_rest(self, finds: _Finds, window: _Window, place: int, start: int, end: int) -> None:
        """Add the rest of a span that the border of a chunk cuts, if its neighbour holds it, however short it is."""
        rest, text = finds.bounded[start:end], window.texts[place]
        pieces = find_pieces(finds.bounded, text)
        if not pieces and (precedes(rest, text) if start == 0 else continues(rest, text)):
            pieces = [Piece(start, end)]
        finds.add(window, place, pieces)


def _is_short(text: str) -> bool:
    """Return whether a normal text is too short to be found in a longer one."""
    return text.count(" ") + 1 < WORDS


def _windows(chunks: Iterable[Chunk]) -> Iterator[_Window]:
    """Yield chunks in batches that begin with the last two chunks of the batch before, so that neighbours meet."""
    window: list[Chunk] = []
    first = 0
    for chunk in chunks:
        window.append(chunk)
        if len(window) == _BATCH:
            yield _Window(first, window, [normal_text(each.text) for each in window])
            first, window = first + _BATCH - _SHARED, window[-_SHARED:]
    yield _Window(first, window, [normal_text(each.text) for each in window])


def _gaps(found: Iterable[_Found], length: int) -> list[tuple[int, int]]:
    return join_pieces([(each.piece.start, each.piece.end) for each in found], length)


def _places(found: Sequence[_Found], length: int, is_complete: bool) -> list[_Place]:
    """Return the places of a span that parts hold together.

    What the border of any other chunk cuts may be there by chance; it counts only if there is no such place, or if not
    all chunks are known.
    """
    ordered = sorted(found, key=lambda each: (each.number, each.piece.start))
    whole = [each for each in ordered if not _gaps([each], length)]
    cut = [each for each in ordered if each not in whole]
    runs: list[list[_Found]] = []
    for each in cut:
        if not runs or each.number > runs[-1][-1].number + 1:
            runs.append([])
        runs[-1].append(each)
    places = [_Place(run, run) for run in runs if is_complete and not _gaps(run, length)]
    for each in whole:
        ends = {(each.number - 1, True, False), (each.number + 1, False, True)}  # of chunks that overlap with it
        rest = [
            part
            for part in cut
            if not is_complete or (part.number, part.piece.start == 0, part.piece.end == length) in ends
        ]
        places.append(_Place([each, *rest], [each]))
    return places or [_Place(ordered, ordered)]


def _among_words(places: list[_Place], span: EvidenceSpan) -> tuple[list[_Place], bool]:
    """Return the places among the words that a span stood among, or else all; and whether all are others."""
    sides = [place.equal_sides(span) for place in places]
    most = max((count for count in sides if count is not None), default=0)
    if most:
        return [place for place, count in zip(places, sides, strict=True) if count == most], False
    return places, all(count == 0 for count in sides)


def _near_words(near: Iterable[_Near], span: EvidenceSpan) -> list[_Near]:
    """Return the matches in chunks that hold the words beside a span, on either side."""
    ends = normal_text(span.before)[-LEAST_PIECE:], normal_text(span.after)[:LEAST_PIECE]
    return [each for each in near if any(len(end) == LEAST_PIECE and end in each.text for end in ends)]


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


def _find_doubt(span: EvidenceSpan, places: Sequence[_Place], near: Iterable[_Near], text: str) -> str | None:
    """Return the reason why words may not be the span; None if they are at one place, and no other may be its own.

    Args:
        near: Changed forms of the span in its document, or among the words that it stood among.
        text: Normal text of the span.
    """
    if (count := _count_places(places)) > 1:
        return f"its words are in {count} places or more"
    distance = min(_distance(part.chunk, span) for place in places for part in place.parts)
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


def _count_places(places: Iterable[_Place]) -> int:
    """Return the number of places that are certainly others, at least one."""
    distinct: list[_Place] = []
    for place in places:
        if all(place.is_other(each) for each in distinct):
            distinct.append(place)
    return len(distinct)


def _carried(span: EvidenceSpan, found: Sequence[_Found], length: int) -> PlacedSpan:
    """Return a carried span, with the words beside it in the chunks, by which it is known from now on."""
    parts = (SpanPart(each.chunk.id, each.piece.start / length, each.piece.end / length, each.share) for each in found)
    before, after = (max((each.piece.beside[0][side] for each in found), key=len) for side in (0, 1))
    known = replace(span, before=before or span.before, after=after or span.after)
    return PlacedSpan(known, SpanState.CARRIED, tuple(parts))
