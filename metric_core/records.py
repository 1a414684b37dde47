"""Records that move between the parts of an evaluation: samples, scores and the products that scores are made of."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

Support: TypeAlias = float | None
"""How far a premise supports a claim, in [0, 1]: 0 or 1 for binary verdicts, a probability otherwise.

None: the judge was not asked or gave nothing usable.
"""


class Status(StrEnum):
    """What a score cell holds."""

    SCORED = "scored"
    UNDEFINED = "undefined"
    FAILED = "failed"


class AnswerStatus(StrEnum):
    """What a row of a stage table holds."""

    ANSWERED = "answered"
    UNDEFINED = "undefined"
    FAILED = "failed"


class Side(StrEnum):
    """Which text of a sample a claim, sentence or entity comes from."""

    RESPONSE = "response"
    REFERENCE = "reference"
    REFERENCE_SENTENCE = "reference_sentence"
    CONTEXT = "context"
    CONTEXT_SENTENCE = "context_sentence"


class VerdictKind(StrEnum):
    """What a verdict is about.

    SUPPORT: the premise supports the claim. USEFULNESS_*: the passage is useful for arriving at that text.
    RELEVANCE: the context sentence helps to answer the question.
    """

    SUPPORT = "support"
    USEFULNESS_FOR_REFERENCE = "usefulness_for_reference"
    USEFULNESS_FOR_RESPONSE = "usefulness_for_response"
    RELEVANCE = "relevance"


class Pair(StrEnum):
    """Which two texts a similarity is about.

    QUESTION: the user's question and a regenerated one. ANSWER: response and reference, by their embeddings;
    ANSWER_CROSS_ENCODER: the same by a cross-encoder.
    """

    QUESTION = "question"
    ANSWER = "answer"
    ANSWER_CROSS_ENCODER = "answer_cross_encoder"


class Direction(StrEnum):
    """Whether more is better."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class Score:
    """One cell of the score table: a value, or the reason why there is none.

    Build it with `scored`, `labelled`, `undefined` or `failed`.

    >>> Score.scored(0.5)
    Score(status=<Status.SCORED: 'scored'>, value=0.5, label=None, reason=None)
    >>> Score.undefined("no claims in the response").value is None
    True
    >>> Score.scored(float("nan"))
    Traceback (most recent call last):
        ...
    ValueError: a score must be finite, got nan; say undefined(reason) or failed(reason) instead
    """

    status: Status
    value: float | None = None
    label: str | None = None
    reason: str | None = None

    @classmethod
    def scored(cls, value: float, scale: str | None = None) -> "Score":
        """A number, with its scale as the label where every row brings its own. Raises ValueError if not finite."""
        number = float(value)
        if not math.isfinite(number):
            raise ValueError(f"a score must be finite, got {number}; say undefined(reason) or failed(reason) instead")
        return cls(Status.SCORED, value=number, label=scale)

    @classmethod
    def labelled(cls, label: str) -> "Score":
        """A category, for metrics whose answer is no number."""
        return cls(Status.SCORED, label=label)

    @classmethod
    def undefined(cls, reason: str) -> "Score":
        """Nothing to measure, and why."""
        return cls(Status.UNDEFINED, reason=reason)

    @classmethod
    def failed(cls, reason: str) -> "Score":
        """Something to measure, but no usable answer, and why."""
        return cls(Status.FAILED, reason=reason)


@dataclass(frozen=True, slots=True)
class Sample:
    """One row to evaluate. A column that the data does not have is None; an empty one is empty."""

    row_id: str = ""
    user_input: str | None = None
    response: str | None = None
    retrieved_contexts: tuple[str, ...] | None = None
    reference: str | None = None
    reference_contexts: tuple[str, ...] | None = None
    retrieved_context_ids: tuple[str, ...] | None = None
    reference_context_ids: tuple[str, ...] | None = None
    rubrics: Mapping[str, str] | None = None

    @property
    def joined_contexts(self) -> str:
        """The retrieved contexts as one text, joined by newlines."""
        return "\n".join(self.retrieved_contexts or ())


@dataclass(frozen=True, slots=True)
class Question:
    """A question regenerated from a response; `noncommittal` if the response avoids an answer."""

    text: str
    noncommittal: bool = False


@dataclass(frozen=True, slots=True)
class Rating:
    """One answer of the judge to a rating question.

    Args:
        template: which question.
        value: its raw label or value; None: nothing usable.
        reason: why.
        unable: the judge can not be asked that.
    """

    template: str
    value: str | float | None
    reason: str | None = None
    unable: bool = False


def finite_number(value: str | float | None) -> float | None:
    """The number that a value is or spells; None if it is none or not finite.

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
