"""Carry the judgments and key points of rows to the chunks that an index has now, by the text that they are about."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, TypeAlias

from metric_core.columns import (
    EVIDENCE_SPANS,
    KEY_POINTS,
    POINT_EVIDENCE,
    RELEVANCE_JUDGMENTS,
    RETRIEVED_CONTEXT_IDS,
    RETRIEVED_CONTEXTS,
)
from metric_core.evidence_spans import EvidenceSpan, PlacedSpan, SpanPart, SpanState, passage_grades
from tasks.record.judgments import JudgmentChange, JudgmentsRecord, KnownIds
from tasks.sources.anchoring.span_places import Chunk, SpanPlaces
from tasks.sources.cells.judgment_values import table_form
from tasks.sources.cells.key_point_values import EVIDENCE
from tasks.sources.chunk_file import read_chunks, text_id

Values: TypeAlias = dict[str, Any]
"""The sample columns of a row, as the samples table holds them."""

_MOST_CHANGES = 20
_LONGEST_TEXT = 80


class CarriedJudgments:
    """The judgments of the rows of a source, and the evidence of their key points, at the chunks of an index.

    A judgment of a text is carried by it (see `span_places`). A judgment of a passage without a text is one of the
    chunk with its id, whose text it is known by from then on; without such a chunk it stays one of an id.

    Args:
        chunks: Address of the chunks that the index has now; None if only the retrieved passages are known.
        redact: Function that redacts the texts of chunks, as those of the rows are.
    """

    def __init__(self, chunks: str | None, redact: Callable[[str], str] | None = None) -> None:
        self._chunks = chunks
        self._redact = redact
        self._places: SpanPlaces | None = None
        self._by_id: dict[str, Chunk] = {}
        self._nameless: dict[str, str | None] = {}
        self._is_chunk: dict[str, bool] = {}
        self._counts: Counter[str] = Counter()
        self._changes: list[JudgmentChange] = []

    def find(self, rows: Callable[[], Iterable[Values]]) -> None:
        """Find the judged texts of all rows in the chunks of the index, or else in the passages of all rows.

        Args:
            rows: Function that reads the rows from the start.
        """
        spans: dict[EvidenceSpan, None] = {}
        self._counts.clear()
        self._changes = []
        self._by_id, self._nameless, self._is_chunk = {}, {}, {}
        wanted: set[str] = set()
        for values in rows():
            of_points = (span for point in values.get(KEY_POINTS) or () for span in point[EVIDENCE])
            spans.update(dict.fromkeys(map(EvidenceSpan.from_json, (*(values.get(EVIDENCE_SPANS) or ()), *of_points))))
            wanted.update(each["id"] for each in values.get(RELEVANCE_JUDGMENTS) or ())
            self._is_chunk.update(dict.fromkeys(values.get(RETRIEVED_CONTEXT_IDS) or (), False))
            if not values.get(RETRIEVED_CONTEXT_IDS):
                self._nameless.update(dict.fromkeys(map(text_id, values.get(RETRIEVED_CONTEXTS) or ())))
        self._places = SpanPlaces(spans, is_complete=self._chunks is not None)
        if self._chunks is not None:
            self._places.read(self._kept(read_chunks(self._chunks, self._redact), wanted))
        elif spans:
            self._places.read(_distinct(chunk for values in rows() for chunk in _retrieved(values)))

    def fill(self, values: Values, row_id: str) -> None:
        """Put the places of a row's evidence into its columns, and the grades of passages that follow from them."""
        self._fill_points(values, row_id)
        grades = {each["id"]: each["grade"] for each in values.get(RELEVANCE_JUDGMENTS) or ()}
        found = {name: self._by_id[name] for name in grades if name in self._by_id}
        given = map(EvidenceSpan.from_json, values.get(EVIDENCE_SPANS) or ())
        placed = [self._place(span) for span in given]
        placed += [_whole(chunk, grades[name]) for name, chunk in found.items()]
        if not placed:
            return
        values[EVIDENCE_SPANS] = [each.to_json() for each in placed]
        derived = passage_grades(placed)
        plain = {name: grade for name, grade in grades.items() if name not in derived and name not in found}
        values[RELEVANCE_JUDGMENTS] = table_form({**plain, **derived})
        if not values.get(RETRIEVED_CONTEXT_IDS) and values.get(RETRIEVED_CONTEXTS) is not None:
            names = map(text_id, values[RETRIEVED_CONTEXTS])
            values[RETRIEVED_CONTEXT_IDS] = [self._nameless.get(name) or name for name in names]
        self._count(placed, row_id)
        self._count_passages(placed, values)

    def _fill_points(self, values: Values, row_id: str) -> None:
        """Put the evidence of key points, which their objects have, into its own column, with its places."""
        points = values.get(KEY_POINTS) or ()
        evidence = [[self._place(EvidenceSpan.from_json(span)) for span in point.pop(EVIDENCE)] for point in points]
        if not any(evidence):
            return
        values[POINT_EVIDENCE] = [[each.to_json() for each in spans] for spans in evidence]
        if self._places is not None:
            self._count((each for spans in evidence for each in spans), row_id)

    @property
    def entry(self) -> JudgmentsRecord | None:
        """Counts of judgments by state and of retrieved ids that are chunks, and the changes; None without evidence."""
        if not self._counts:
            return None
        counts = {name: self._counts[name] for name in (*SpanState, "passages", "new")}
        facts = {"is_complete": self._chunks is not None, "changes": tuple(self._changes)}
        found = JudgmentsRecord.model_validate({**counts, **facts})
        if self._chunks is None or not self._is_chunk:
            return found
        file, known = PurePath(self._chunks).name, sum(self._is_chunk.values())
        return found.extend(ids=KnownIds(file=file, retrieved=len(self._is_chunk), known=known))

    def _kept(self, chunks: Iterable[Chunk], wanted: set[str]) -> Iterator[Chunk]:
        for chunk in chunks:
            if chunk.id in self._is_chunk:
                self._is_chunk[chunk.id] = True
            if chunk.id in wanted:
                self._by_id[chunk.id] = chunk
            if self._nameless and (name := text_id(chunk.text)) in self._nameless:
                self._nameless[name] = chunk.id
            yield chunk

    def _place(self, span: EvidenceSpan) -> PlacedSpan:
        return PlacedSpan(span, SpanState.UNSEEN) if self._places is None else self._places.place(span)

    def _count_passages(self, placed: Iterable[PlacedSpan], values: Mapping[str, Any]) -> None:
        judged = {each["id"] for each in values[RELEVANCE_JUDGMENTS]}
        held = judged | {part.passage for each in placed for part in each.parts}
        retrieved = set(values.get(RETRIEVED_CONTEXT_IDS) or ())
        self._counts.update(passages=len(retrieved), new=len(retrieved - held))

    def _count(self, placed: Iterable[PlacedSpan], row_id: str) -> None:
        for each in placed:
            self._counts[each.state] += 1
            if each.change is not None and len(self._changes) < _MOST_CHANGES:
                text = each.span.text[:_LONGEST_TEXT]
                self._changes.append(JudgmentChange(row=row_id, state=str(each.state), text=text, change=each.change))


def _whole(chunk: Chunk, grade: float) -> PlacedSpan:
    span = EvidenceSpan(chunk.text, chunk.document, chunk.start, chunk.end, grade)
    return PlacedSpan(span, SpanState.CARRIED, (SpanPart(chunk.id, 0.0, 1.0, 1.0),))


def _retrieved(values: Values) -> Iterator[Chunk]:
    texts = values.get(RETRIEVED_CONTEXTS) or ()
    ids = values.get(RETRIEVED_CONTEXT_IDS) or map(text_id, texts)
    return (Chunk(name, text) for name, text in zip(ids, texts, strict=False))


def _distinct(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    seen: set[str] = set()
    for chunk in chunks:
        if chunk.id not in seen:
            seen.add(chunk.id)
            yield chunk
