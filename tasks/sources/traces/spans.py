"""Define the span that all forms of traces are read into."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from tasks.sources.passage_objects import Passage


class Said(NamedTuple):
    """A message.

    Args:
        role: "user", "assistant", "tool" or the role as recorded.
        text: Its text.
    """

    role: str
    text: str


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
        span_id: Id of the span, unique in its trace.
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
    earlier: list[Said] = field(default_factory=list)
    answer: str | None = None
    prompt: str | None = None
    passages: list[Passage] | None = None
    candidates: list[Passage] | None = None
    tool_results: list[str] = field(default_factory=list)
    model: str | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    response_id: str | None = None
    session: str | None = None
    extras: dict[str, Any] = field(default_factory=dict)

    @property
    def seconds(self) -> float | None:
        """Duration in seconds; None if unknown."""
        if self.start is None or self.end is None:
            return None
        return round(self.end - self.start, 6)
