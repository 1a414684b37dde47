"""Records of an evaluation: samples, scores, and the products that scores are computed from."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeAlias

from metric_core.evidence_spans import PlacedSpan, SpanState

Support: TypeAlias = float | None
"""Support of a claim by a premise, in [0, 1]: 0 or 1 for binary verdicts, a probability otherwise.

None if the judge was not asked or gave no usable answer.
"""


class Status(StrEnum):
    """Status of a score cell."""

    SCORED = "scored"
    UNDEFINED = "undefined"
    FAILED = "failed"


class AnswerStatus(StrEnum):
    """Status of a row of a stage table."""

    ANSWERED = "answered"
    UNDEFINED = "undefined"
    FAILED = "failed"


class Side(StrEnum):
    """Text of a sample that a claim, sentence or entity comes from."""

    RESPONSE = "response"
    RESPONSE_SENTENCE = "response_sentence"
    REFERENCE = "reference"
    REFERENCE_CONTEXT = "reference_context"
    REFERENCE_SENTENCE = "reference_sentence"
    CONTEXT = "context"
    CONTEXT_SENTENCE = "context_sentence"
    KEY_POINT = "key_point"


class VerdictKind(StrEnum):
    """Subject of a verdict.

    SUPPORT: the premise supports the claim. FULL_SUPPORT: the same, for a metric that requests three levels.
    PARTIAL_SUPPORT: it supports the claim or a part of it, for verdicts in three levels. USEFULNESS_*: the passage is
    useful for arriving at the reference or the response. RELEVANCE: the context sentence helps to answer the user
    question.
    """

    SUPPORT = "support"
    FULL_SUPPORT = "full_support"
    PARTIAL_SUPPORT = "partial_support"
    USEFULNESS_FOR_REFERENCE = "usefulness_for_reference"
    USEFULNESS_FOR_RESPONSE = "usefulness_for_response"
    RELEVANCE = "relevance"


VerdictKey: TypeAlias = tuple[VerdictKind, str, str]
"""Kind, claim id and premise of a verdict, as in the table of verdicts."""


class Importance(StrEnum):
    """Importance of a key point: an answer without a vital one is not good; an okay one is worth saying."""

    VITAL = "vital"
    OKAY = "okay"


class Pair(StrEnum):
    """Pair of texts that a similarity compares.

    QUESTION: the user question and a regenerated question. ANSWER: response and reference, by their embeddings.
    ANSWER_CROSS_ENCODER: response and reference, by a cross-encoder.
    """

    QUESTION = "question"
    ANSWER = "answer"
    ANSWER_CROSS_ENCODER = "answer_cross_encoder"


class Direction(StrEnum):
    """Direction of improvement of a metric."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


_FEW_WORDS = 12
"""Most words of an answer that says nothing without its question."""


@dataclass(frozen=True, slots=True)
class Score:
    """A cell of the score table: a value, or the reason why there is none.

    Create it with `scored`, `labelled`, `undefined` or `failed`.

    >>> Score.scored(0.5)
    Score(status=<Status.SCORED: 'scored'>, value=0.5, label=None, reason=None)
    >>> Score.undefined("no claims in the response").value is None
    True
    >>> Score.scored(float("nan"))
    Traceback (most recent call last):
        ...
    ValueError: a score must be finite, got nan; use Score.undefined(reason) or Score.failed(reason)
    """

    status: Status
    value: float | None = None
    label: str | None = None
    reason: str | None = None

    @classmethod
    def scored(cls, value: float, scale: str | None = None) -> "Score":
        """Return a numeric score; `scale` names the scale of the row if rows have different scales.

        Raises:
            ValueError: If the value is not finite.
        """
        number = float(value)
        if not math.isfinite(number):
            raise ValueError(
                f"a score must be finite, got {number}; use Score.undefined(reason) or Score.failed(reason)"
            )
        return cls(Status.SCORED, value=number, label=scale)

    @classmethod
    def labelled(cls, label: str) -> "Score":
        """Return a categorical score, for metrics whose result is not a number."""
        return cls(Status.SCORED, label=label)

    @classmethod
    def undefined(cls, reason: str) -> "Score":
        """Return a cell without a value because there was nothing to measure."""
        return cls(Status.UNDEFINED, reason=reason)

    @classmethod
    def failed(cls, reason: str) -> "Score":
        """Return a cell without a value because a model gave no usable answer."""
        return cls(Status.FAILED, reason=reason)


@dataclass(frozen=True, slots=True)
class KeyPoint:
    """A fact that a good answer states.

    Args:
        evidence: Places in the sources that state the fact; empty if they are not given.
    """

    text: str
    importance: Importance = Importance.VITAL
    evidence: tuple[PlacedSpan, ...] = ()

    @property
    def is_edited(self) -> bool:
        """True if the sources no longer say so in the words of its evidence, so that the fact may be another one."""
        return any(span.state is SpanState.EDITED for span in self.evidence)


@dataclass(frozen=True, slots=True)
class Sample:
    """A row to evaluate. Columns that the data does not have are None; empty columns are empty."""

    row_id: str = ""
    user_input: str | None = None
    response: str | None = None
    retrieved_contexts: tuple[str, ...] | None = None
    reference: str | None = None
    reference_contexts: tuple[str, ...] | None = None
    retrieved_context_ids: tuple[str, ...] | None = None
    reference_context_ids: tuple[str, ...] | None = None
    rubrics: Mapping[str, str] | None = None
    extras: Mapping[str, Any] | None = None
    """All other columns of the data, which plugins may declare."""
    retrieved_context_scores: tuple[float | None, ...] | None = None
    """Scores that the retriever gave the retrieved contexts; None for a context without one."""
    session_id: str | None = None
    """Conversation that the row belongs to."""
    conversation: str | None = None
    """Whole conversation as text, if the row is one."""
    earlier_turns: str | None = None
    """Messages of the conversation before the question, as text."""
    earlier_contexts: tuple[str, ...] | None = None
    """Contexts retrieved for earlier questions of the conversation."""
    tool_results: tuple[str, ...] | None = None
    """Results of tools that were called before the response."""
    earlier_answers: tuple[str, ...] | None = None
    """Responses to earlier questions of the conversation."""
    relevance_judgments: Mapping[str, float] | None = None
    """Grades of passages for the user question, by the id of the passage; a passage without one is unjudged."""
    key_points: tuple[KeyPoint, ...] | None = None
    """Facts that a good answer states."""
    evidence_spans: tuple[PlacedSpan, ...] | None = None
    """Spans of source text that answer the user question, with their places in the retrieved passages."""

    @property
    def joined_contexts(self) -> str:
        """Retrieved contexts as one text, joined by newlines."""
        return "\n".join(self.retrieved_contexts or ())

    def with_question(self, answer: str | None) -> str:
        """Return an answer of at most twelve words behind the user question, and a longer one alone.

        >>> Sample(user_input="How long is the link valid?").with_question("60 minutes.")
        'How long is the link valid? 60 minutes.'
        """
        text, question = answer or "", (self.user_input or "").strip()
        return f"{question} {text}" if question and 0 < len(text.split()) <= _FEW_WORDS else text

    @property
    def joined_sources(self) -> str:
        """Retrieved contexts, those of earlier questions and results of tools as one text, joined by newlines."""
        return "\n".join((*(self.retrieved_contexts or ()), *(self.earlier_contexts or ()), *(self.tool_results or ())))


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a claim or sentence in its text.

    Args:
        start: Position of its first character in the text, from 0.
        end: Position after its last character.
        sentence: Index of its sentence in the text, from 0.
        citations: Labels of the citation markers that belong to it, as written: see `metric_core.claims.citations`.
    """

    start: int
    end: int
    sentence: int
    citations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A question regenerated from a response; `noncommittal` if the response avoids an answer."""

    text: str
    noncommittal: bool = False


@dataclass(frozen=True, slots=True)
class VerdictRequest:
    """A verdict that a metric asks for: whether a premise supports a claim or statement.

    Args:
        claim: Id of a claim or sentence of the row, as `Evidence.claim_ids` returns it.
        statement: A text to judge instead of a claim.
        premise: Name of the premise: `ALL_CONTEXTS`, `BY_REFERENCE`, `BY_RESPONSE` or `context_premise(index)` of
            `metric_core.evidence`.
        premise_text: A text to judge against instead of a named premise.
        has_levels: True to judge in three levels, in which partial support counts one half, for metrics that read
            Product.REQUESTED_LEVELS too.

    Raises:
        ValueError: If there is not exactly one of claim and statement, or not exactly one of premise and premise_text.

    >>> VerdictRequest(claim="response:0", premise="context:1").key
    ('response:0', 'context:1')
    >>> VerdictRequest(statement="It rains.", premise="response").key[0]
    'statement:6f58a7623963538d'
    """

    claim: str | None = None
    statement: str | None = None
    premise: str | None = None
    premise_text: str | None = None
    has_levels: bool = False

    def __post_init__(self) -> None:
        for one, other in (("claim", "statement"), ("premise", "premise_text")):
            if (getattr(self, one) is None) == (getattr(self, other) is None):
                raise ValueError(f"a verdict request has either {one} or {other}, got {self!r}")

    @property
    def key(self) -> tuple[str, str]:
        """Claim id and premise of the verdict in the table of verdicts; digests of own texts."""
        claim = self.claim if self.statement is None else f"{STATEMENT}:{_digest(self.statement)}"
        premise = self.premise if self.premise_text is None else f"{PREMISE_TEXT}:{_digest(self.premise_text)}"
        return claim or "", premise or ""

    @property
    def kind(self) -> VerdictKind:
        """Kind of the verdict in the table of verdicts, which has another row of PARTIAL_SUPPORT for three levels."""
        return VerdictKind.FULL_SUPPORT if self.has_levels else VerdictKind.SUPPORT

    def support(self, verdicts: Mapping[tuple[VerdictKind, str, str], Support]) -> Support:
        """Return the support that verdicts give; None if one of them is missing.

        >>> asked = VerdictRequest(claim="response:0", premise="context:1", has_levels=True)
        >>> full, partial = ((kind, *asked.key) for kind in (VerdictKind.FULL_SUPPORT, VerdictKind.PARTIAL_SUPPORT))
        >>> asked.support({full: 0.0, partial: 1.0}), asked.support({full: 0.0})
        (0.5, None)
        """
        full = verdicts.get((self.kind, *self.key))
        return full if not self.has_levels else mean_level(full, verdicts.get((VerdictKind.PARTIAL_SUPPORT, *self.key)))


def mean_level(full: Support, partial: Support) -> Support:
    """Return the support by a verdict in three levels: one half if a premise supports a part of a claim.

    Args:
        full: Support of the claim as a whole, in [0, 1].
        partial: Support of the claim or a part of it, in [0, 1].
    """
    return None if full is None or partial is None else (full + partial) / 2


STATEMENT, PREMISE_TEXT = "statement", "text"
"""Prefixes of the keys of own statements and own premises."""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Rating:
    """An answer of the judge to a rating question.

    Args:
        template: Name of the rating question.
        value: Label or number as answered; None if the answer was unusable.
        reason: Reason why there is no value.
        unable: True if the judge cannot answer this kind of question.
    """

    template: str
    value: str | float | None
    reason: str | None = None
    unable: bool = False


def finite_number(value: str | float | Decimal | None) -> float | None:
    """Return a value, or a text that spells a number, as a finite number; None otherwise.

    >>> finite_number("0.5"), finite_number(2), finite_number("nan"), finite_number("two"), finite_number(10**400)
    (0.5, 2.0, None, None, None)
    """
    if value is None or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
