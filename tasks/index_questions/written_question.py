"""A question that was written from chunks of an index, with its answer and the evidence for it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from metric_core.columns import EVIDENCE_SPANS, QUESTION_KIND, SINCE, WRITTEN_FROM
from metric_core.evidence_spans import EvidenceSpan, digest_text

NO_ANSWER = "The documents do not answer this question."
"""Reference of a question that the index does not answer."""


@dataclass(frozen=True, slots=True)
class WrittenQuestion:
    """A question from an index.

    Args:
        kind: Name of its kind.
        reference: Right answer.
        key_points: Facts that a right answer states.
        spans: Evidence of the answer, verbatim; empty if the index does not answer the question.
        written_from: Digests of the chunks that the writer was shown.
        earlier_turns: Question and answer that it follows; None for a first question.
        since: Version of the index for which it was written.
        quotes: Evidence as it stood when the question was written; default: that of `spans`. Other chunks may have it
            in another form, but the question stays the same.
    """

    kind: str
    question: str
    reference: str
    key_points: tuple[str, ...] = ()
    spans: tuple[EvidenceSpan, ...] = ()
    written_from: tuple[str, ...] = field(default=(), compare=False)
    earlier_turns: str | None = None
    since: str = field(default="", compare=False)
    quotes: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "quotes", self.quotes or tuple(span.text for span in self.spans))

    @property
    def id(self) -> str:
        """Id of its row, which follows from its content, so that it is the same in every version of the index."""
        return digest_text(json.dumps([self.kind, self.earlier_turns, self.question, self.reference]))

    @property
    def evidence(self) -> str:
        """The texts of its evidence."""
        return "\n".join(span.text for span in self.spans)

    @property
    def asked(self) -> str:
        """The question with what came before it."""
        return "\n".join(filter(None, (self.earlier_turns, self.question)))

    def to_row(self) -> dict[str, Any]:
        """Return its row in a file of questions, which `from_row` reads.

        >>> question = WrittenQuestion("single_fact", "When does it open?", "At nine.", since="1")
        >>> WrittenQuestion.from_row(question.to_row()) == question
        True
        """
        row: dict[str, Any] = {"id": self.id, "user_input": self.question, "reference": self.reference}
        if self.earlier_turns is not None:
            row["earlier_turns"] = self.earlier_turns
        if self.key_points:
            row["key_points"] = list(self.key_points)
        row["reference_contexts"] = list(self.quotes)
        row[EVIDENCE_SPANS] = [span.to_json() for span in self.spans]
        return row | {QUESTION_KIND: self.kind, SINCE: self.since, WRITTEN_FROM: list(self.written_from)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Return the question of a row.

        Raises:
            KeyError: The row lacks a column that every written question has.
        """
        return cls(
            kind=row[QUESTION_KIND],
            question=row["user_input"],
            reference=row["reference"],
            key_points=tuple(row.get("key_points") or ()),
            spans=tuple(map(EvidenceSpan.from_json, row[EVIDENCE_SPANS])),
            written_from=tuple(row[WRITTEN_FROM]),
            earlier_turns=row.get("earlier_turns"),
            since=row[SINCE],
            quotes=tuple(row["reference_contexts"]),
        )
