"""A row of a test set that was kept because a run got it wrong, with its evidence, its state and its history."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import Field

from metric_core.columns import (
    EARLIER_ANSWERS,
    EARLIER_CONTEXTS,
    EARLIER_TURNS,
    EVIDENCE_SPANS,
    KEY_POINTS,
    REFERENCE,
    REFERENCE_CONTEXT_IDS,
    REFERENCE_CONTEXTS,
    RELEVANCE_JUDGMENTS,
    RUBRICS,
    USER_INPUT,
)
from metric_core.diagnosis.overlap import SAME_MATTER, coverage, trigrams
from metric_core.evidence_spans import EvidenceSpan, digest_text
from metric_core.records import Sample
from tasks.record.part import Part
from tasks.sources.anchoring.span_text import normal_text

KEPT = "kept"
"""Column of a test set with what is known of a kept row."""

_ASKED = (
    *(USER_INPUT, REFERENCE, REFERENCE_CONTEXTS, REFERENCE_CONTEXT_IDS),
    *(EARLIER_TURNS, EARLIER_ANSWERS, EARLIER_CONTEXTS, RUBRICS),
)
"""Columns of a sample that are the same whoever answers."""
_NEARLY = 0.1
"""Share of the words of a reference that a passage may lack beside the one that has most of them."""


class RowState(StrEnum):
    """State of a kept row.

    FAILING: the last run that says so got it wrong. IMPROVING: it was right since, in fewer rebuilds than a graduate.
    GRADUATED: it was right in enough rebuilds, one after the other. RETIRED: its evidence is gone from the index.
    """

    FAILING = "failing"
    IMPROVING = "improving"
    GRADUATED = "graduated"
    RETIRED = "retired"


class Result(StrEnum):
    """Finding of a run about a row.

    KEPT, BAD: it is wrong. GOOD: it is right. UNKNOWN: the run does not say. GONE: its evidence is gone from the index.
    BACK: its evidence is there again.
    """

    KEPT = "kept"
    BAD = "bad"
    GOOD = "good"
    UNKNOWN = "unknown"
    GONE = "gone"
    BACK = "back"


class Event(Part):
    """An entry of the history of a row.

    Args:
        run: Id of the run.
        at: Time at which the run began.
        index: Digest of the chunks of the index; None if they are not known.
        why: Reason; empty for a good row.
    """

    run: str
    at: datetime
    index: str | None
    result: Result
    why: str = ""


class Kept(Part):
    """Knowledge of a kept row.

    Args:
        where: Conditions by which it was kept.
        state: Its state.
        evidence: Texts of the index that answer it, by which a later index is searched.
        needs_all: True if the answer needs all of the evidence; False if any of it may have sufficed.
        response: Response for which it was kept.
        history: Findings of runs about it, one for each change and each version of the index.
    """

    where: tuple[str, ...]
    state: RowState = RowState.FAILING
    evidence: tuple[dict[str, Any], ...] = ()
    needs_all: bool = False
    response: str | None = None
    history: tuple[Event, ...] = Field(min_length=1)

    @property
    def spans(self) -> tuple[EvidenceSpan, ...]:
        """The evidence."""
        return tuple(map(EvidenceSpan.from_json, self.evidence))

    @property
    def good_rebuilds(self) -> int:
        """The number of versions of the index, other than that of the last mistake, since which the row is right."""
        versions: set[str | None] = {None}
        for event in reversed(self.history):
            if event.result is Result.GOOD:
                versions.add(event.index)
            elif event.result is not Result.UNKNOWN:
                return len(versions - {None, event.index})
        return len(versions - {None})

    def add(self, event: Event, graduates_after: int) -> "Kept":
        """Return what is known after a run. A result that is the same as before for the same index adds no entry."""
        last = self.history[-1]
        is_same = (last.index, last.result) == (event.index, event.result)
        history = (*self.history[: -1 if is_same else None], event)
        known = self.extend(history=history)
        if event.result is Result.GONE:
            return known.extend(state=RowState.RETIRED)
        if event.result in {Result.BAD, Result.BACK}:
            return known.extend(state=RowState.FAILING)
        if event.result is Result.UNKNOWN or self.state is RowState.GRADUATED:
            return known
        is_done = known.good_rebuilds >= graduates_after
        return known.extend(state=RowState.GRADUATED if is_done else RowState.IMPROVING)


@dataclass(frozen=True, slots=True)
class KeptRow:
    """A line of a test set.

    Args:
        content: Its columns, as they are written; people may add some, such as a reference.
        kept: Knowledge of it; None for a line that was not kept from a run, which stays as it is.
    """

    content: Mapping[str, Any]
    kept: Kept | None

    @property
    def key(self) -> str:
        """Digest of its question, by which rows are the same."""
        return question_key(self.content.get(EARLIER_TURNS), self.content.get(USER_INPUT))

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "KeptRow":
        """Return the row of a line.

        Raises:
            ValueError: What is known of it cannot be read.
        """
        kept = content.get(KEPT)
        return cls(content, None if kept is None else Kept.model_validate(kept))

    def to_json(self) -> dict[str, Any]:
        """Return the row as a line."""
        return {**self.content} if self.kept is None else {**self.content, KEPT: self.kept.to_json()}

    def with_kept(self, kept: Kept) -> "KeptRow":
        """Return the row with what is known of it now."""
        return replace(self, kept=kept)


def question_key(earlier_turns: str | None, question: str | None) -> str:
    """Return the digest of a question with what came before it, whatever its layout and capitals.

    >>> question_key(None, "When does it open?") == question_key(None, "when does it  open")
    True
    """
    asked = "\n".join(filter(None, (earlier_turns, question)))
    return digest_text(normal_text(asked) or asked)


def asked_columns(sample: Sample) -> dict[str, Any]:
    """Return the columns of a row that a run about it needs, without what the system answered and retrieved."""
    values: dict[str, Any] = {"id": question_key(sample.earlier_turns, sample.user_input)}
    values |= {name: value for name in _ASKED if (value := getattr(sample, name)) is not None}
    if sample.key_points is not None:
        values[KEY_POINTS] = [
            {
                "text": point.text,
                "importance": str(point.importance),
                "evidence": [each.span.to_json() for each in point.evidence],
            }
            for point in sample.key_points
        ]
    spans = sample.evidence_spans or ()
    if spans:
        values[EVIDENCE_SPANS] = [each.span.to_json() for each in spans]
    placed = {part.passage for each in spans for part in each.parts}
    grades = sample.relevance_judgments or {}
    if plain := {name: grade for name, grade in grades.items() if name not in placed}:
        values[RELEVANCE_JUDGMENTS] = plain
    return values


@dataclass(frozen=True, slots=True)
class Evidence:
    """Texts that may be the evidence of a row.

    Args:
        needs_all: True if the answer needs all of them.
        is_given: True if the data say that they are evidence; else those count that the index has.
    """

    spans: tuple[EvidenceSpan, ...]
    needs_all: bool
    is_given: bool = False

    def found_in(self, there: Collection[EvidenceSpan] | None) -> tuple[EvidenceSpan, ...]:
        """Return the texts that count.

        Args:
            there: Those that the index has; None if its chunks are not known.
        """
        if self.is_given or there is None:
            return self.spans
        return tuple(span for span in self.spans if span in there)


def find_evidence(sample: Sample) -> Iterator[Evidence]:
    """Yield what may be the evidence of a row, the surest first: what was judged so, then what was retrieved."""
    of_points = (each for point in sample.key_points or () for each in point.evidence)
    given = [each.span for each in (*(sample.evidence_spans or ()), *of_points) if each.span.grade > 0]
    yield Evidence(tuple(dict.fromkeys(given)), needs_all=True, is_given=True)
    yield Evidence(tuple(map(EvidenceSpan, sample.reference_contexts or ())), needs_all=True)
    texts = sample.retrieved_contexts or ()
    grades = sample.relevance_judgments or {}
    ids = sample.retrieved_context_ids or ()
    relevant = [text for name, text in zip(ids, texts, strict=False) if grades.get(name, 0) > 0]
    for chosen in (relevant, _that_state(sample, texts), texts):
        yield Evidence(tuple(dict.fromkeys(map(EvidenceSpan, chosen))), needs_all=False)


def _that_state(sample: Sample, passages: Sequence[str]) -> list[str]:
    """Return the passages that have most of the words of a key point or of the reference."""
    points = [point.text for point in sample.key_points or ()] or [sample.reference or ""]
    grams = [*map(trigrams, passages)]
    found = set[int]()
    for point in map(trigrams, points):
        shares = [coverage(point, each) for each in grams]
        best = max(shares, default=0.0)
        found |= {place for place, share in enumerate(shares) if best >= SAME_MATTER and share >= best - _NEARLY}
    return [text for place, text in enumerate(passages) if place in found]
