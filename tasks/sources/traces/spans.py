"""Define the span that all forms of traces are read into."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tasks.sources.cells.messages import ChatMessage
from tasks.sources.cells.passage_objects import RetrievedPassage


class Kind(StrEnum):
    """Kind of the step that a span records."""

    CHAIN = "chain"
    LLM = "llm"
    RETRIEVER = "retriever"
    RERANKER = "reranker"
    TOOL = "tool"
    OTHER = "other"
    """A step beside the way to the answer: an evaluator, a guardrail, an embedding, an event."""


@dataclass(slots=True)
class Span:
    """A step of a trace.

    Args:
        trace_id: Id of its trace.
        span_id: Id of the span, unique in its trace but for clashes.
        parent_id: Id of the span that it is part of; None for a root.
        name: Name of the step.
        kind: Kind of the step. A chain may be anything that has a question and an answer.
        start: Seconds since 1970 at which it began; None if unknown.
        end: Seconds since 1970 at which it ended; None if unknown.
        failed: True if it ended with an error.
        parent_is_remote: True if the parent is in another process, whose spans may be stored elsewhere.
        question: Text of its input; of messages, the last one of the user.
        earlier: Messages before the question, if the input is a conversation.
        answer: Text of its output; of messages, the last one of the assistant.
        unread: Description of an output without an answer; None if it has one, or was not recorded.
        is_unread: True for a retriever or reranker with an output in which no passages can be read.
        prompt: All text that went into a model.
        passages: Passages that a retriever or reranker returned; None for other spans.
        candidates: Passages that a reranker got; None if they are not known.
        tool_results: Results of tools.
        model: Name of the model that answered.
        prompt_tokens: Number of tokens of the prompt.
        output_tokens: Number of generated tokens.
        response_id: Id that the model's server gave the answer.
        session: Id of the session or conversation.
        extras: Other attributes, by name.
        clashes: Number of other spans of the trace that were read before it and have its id.
    """

    trace_id: str
    span_id: str
    parent_id: str | None = None
    name: str = ""
    kind: Kind = Kind.CHAIN
    start: float | None = None
    end: float | None = None
    failed: bool = False
    parent_is_remote: bool = False
    question: str | None = None
    earlier: list[ChatMessage] = field(default_factory=list)
    answer: str | None = None
    unread: str | None = None
    is_unread: bool = False
    prompt: str | None = None
    passages: list[RetrievedPassage] | None = None
    candidates: list[RetrievedPassage] | None = None
    tool_results: list[str] = field(default_factory=list)
    model: str | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    response_id: str | None = None
    session: str | None = None
    extras: dict[str, Any] = field(default_factory=dict)
    clashes: int = 0

    @property
    def key(self) -> str:
        """Its id, with a number if it is not the first span that has the id."""
        return f"{self.span_id}#{self.clashes + 1}" if self.clashes else self.span_id

    @property
    def seconds(self) -> float | None:
        """Duration in seconds; None if it is not known, or the span ended before it began."""
        if self.start is None or self.end is None or self.is_backwards:
            return None
        return round(self.end - self.start, 6)

    @property
    def is_backwards(self) -> bool:
        """Whether it ended before it began, as clocks that were set back record it."""
        return self.start is not None and self.end is not None and self.end < self.start
