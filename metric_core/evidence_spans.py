"""Evidence of an answer as spans of source text, which stay what they are when an index is cut into other chunks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class EvidenceSpan:
    """A span of a source's text that answers a question, or a part of it.

    Args:
        text: The span's text, verbatim.
        document: Id of the document; None if it is not known: the span is then known by its text alone.
        start: Position of its first character in the document, from 0; None if it is not known.
        end: Position after its last character; None if it is not known.
        grade: Grade of relevance of the span for the question of its row.
    """

    text: str
    document: str | None = None
    start: int | None = None
    end: int | None = None
    grade: float = 1.0

    def to_json(self) -> dict[str, Any]:
        """Return the span as an item of the column `evidence_spans`.

        >>> EvidenceSpan("It rains.", "weather", 10, 19).to_json()
        {'document': 'weather', 'start': 10, 'end': 19, 'text': 'It rains.', 'grade': 1.0}
        """
        return {
            "document": self.document,
            "start": self.start,
            "end": self.end,
            "text": self.text,
            "grade": self.grade,
        }

    @classmethod
    def from_json(cls, item: Mapping[str, Any]) -> "EvidenceSpan":
        """Return the span of an item of the column `evidence_spans`.

        >>> EvidenceSpan.from_json({"text": "It rains."})
        EvidenceSpan(text='It rains.', document=None, start=None, end=None, grade=1.0)
        """
        grade = item.get("grade")
        return cls(
            item["text"], item.get("document"), item.get("start"), item.get("end"), 1.0 if grade is None else grade
        )
