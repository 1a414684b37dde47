"""Evidence of an answer as spans of source text, which stay what they are when an index is cut into other chunks."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


def digest_text(text: str) -> str:
    """Return the digest by which a text is known, whatever its id.

    >>> digest_text("It rains.")
    '6f58a7623963538d'
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


_HALF = 0.5
"""Least share of a span that a passage holds, or of a passage that is in a span, if it has the span's grade."""
_NEARLY_ALL = 0.9
"""Least share of a passage that is in judged spans if it is judged although it holds little of a relevant one."""


class SpanState(StrEnum):
    """State of a span in the chunks of an index.

    CARRIED: the chunks hold all of it, word by word. EDITED: they hold a changed form of it. UNCERTAIN: they hold its
    words, but perhaps as other evidence: in another document, or in several places. LOST: they do not hold it. UNSEEN:
    no retrieved passage holds it, and the other chunks of the index are not known.
    """

    CARRIED = "carried"
    EDITED = "edited"
    UNCERTAIN = "uncertain"
    LOST = "lost"
    UNSEEN = "unseen"


@dataclass(frozen=True, slots=True)
class EvidenceSpan:
    """A span of a source's text that answers a question, or a part of it.

    Args:
        text: The span's text, verbatim.
        document: Id of the document; None if it is not known: the span is then known by its text alone.
        start: Position of its first character in the document, from 0; None if it is not known.
        end: Position after its last character; None if it is not known.
        grade: Grade of relevance of the span for the question of its row.
        before: Words before it, which distinguish it from the same words elsewhere; empty if they are not known.
        after: Words after it.
    """

    text: str
    document: str | None = None
    start: int | None = None
    end: int | None = None
    grade: float = 1.0
    before: str = field(default="", compare=False)
    after: str = field(default="", compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return the span as an item of the column `evidence_spans`.

        >>> EvidenceSpan("It rains.", "weather", 10, 19).to_json()
        {'document': 'weather', 'start': 10, 'end': 19, 'text': 'It rains.', 'grade': 1.0, 'before': '', 'after': ''}
        """
        return {
            "document": self.document,
            "start": self.start,
            "end": self.end,
            "text": self.text,
            "grade": self.grade,
            "before": self.before,
            "after": self.after,
        }

    @classmethod
    def from_json(cls, item: Mapping[str, Any]) -> "EvidenceSpan":
        """Return the span of an item of the column `evidence_spans`.

        >>> EvidenceSpan.from_json({"text": "It rains."})
        EvidenceSpan(text='It rains.', document=None, start=None, end=None, grade=1.0, before='', after='')
        """
        grade = item.get("grade")
        return cls(
            item["text"],
            item.get("document"),
            item.get("start"),
            item.get("end"),
            1.0 if grade is None else grade,
            item.get("before") or "",
            item.get("after") or "",
        )


@dataclass(frozen=True, slots=True)
class SpanPart:
    """A part of a span that a chunk of the index holds.

    Args:
        passage: Id of the chunk.
        start: Beginning of the part, as a share of the span.
        end: End of the part, as a share of the span.
        share: Share of the chunk that the part makes up.
    """

    passage: str
    start: float
    end: float
    share: float


@dataclass(frozen=True, slots=True)
class PlacedSpan:
    """A span of evidence with its place in the chunks of an index.

    Args:
        parts: Parts of the span that chunks hold; they may overlap as the chunks do. Empty unless it is carried.
        change: The words that changed, or the reason why the place is not certain; None if the span is carried, lost or
            unseen.
        near: Id of the chunk that holds the changed form of the span; None if there is none.
    """

    span: EvidenceSpan
    state: SpanState
    parts: tuple[SpanPart, ...] = ()
    change: str | None = None
    near: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the span in the form of the samples table."""
        parts = [
            {"passage": part.passage, "start": part.start, "end": part.end, "share": part.share} for part in self.parts
        ]
        place = {"state": str(self.state), "change": self.change, "near": self.near, "parts": parts}
        return {**self.span.to_json(), **place}

    @classmethod
    def from_json(cls, item: Mapping[str, Any]) -> "PlacedSpan":
        """Return the span of an item of the samples table."""
        parts = tuple(SpanPart(**part) for part in item["parts"] or ())
        return cls(EvidenceSpan.from_json(item), SpanState(item["state"]), parts, item["change"], item["near"])

    @property
    def counts(self) -> bool:
        """True if the judgment of the span holds for the index: it is there, or nothing says that it is not."""
        return self.state in {SpanState.CARRIED, SpanState.UNSEEN}


def passage_grades(spans: Iterable[PlacedSpan]) -> dict[str, float]:
    """Return the grades of passages that follow from spans; a passage whose grade does not follow has none.

    A passage has the highest grade of the relevant spans that it holds half of, or that make up half of it. A passage
    of nothing but judged text has the grade of that text otherwise, 0 if it holds a little of a relevant span. One with
    edited evidence has no grade, whatever else it holds.

    >>> fee = PlacedSpan(EvidenceSpan("...", grade=2.0), SpanState.CARRIED, (SpanPart("a", 0.0, 1.0, 0.2),))
    >>> other = PlacedSpan(EvidenceSpan("...", grade=0.0), SpanState.CARRIED, (SpanPart("b", 0.0, 1.0, 0.4),))
    >>> passage_grades([fee, other])
    {'a': 2.0}
    """
    judged: dict[str, float] = defaultdict(float)
    found: dict[str, list[float]] = defaultdict(list)
    rest: dict[str, list[float]] = defaultdict(list)
    edited: set[str | None] = set()
    for span in spans:
        edited.add(span.near)
        for part in span.parts:
            judged[part.passage] += part.share
            grade = span.span.grade
            is_relevant = grade > 0 and max(part.end - part.start, part.share) >= _HALF
            (found if is_relevant else rest)[part.passage].append(grade if is_relevant else min(grade, 0.0))
    sure = (name for name, share in judged.items() if name not in edited and (name in found or share >= _NEARLY_ALL))
    return {name: max(found[name] if name in found else rest[name]) for name in sure}
