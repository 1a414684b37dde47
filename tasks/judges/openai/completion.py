"""The words of a server's reply: without thoughts, one text an answer, or why there is none."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from metric_core.prompts.reasoning import split_thought
from tasks.judges.openai.context_window import TOO_LONG, is_overflow
from tasks.judges.openai.label_probabilities import TokenStep
from tasks.model_clients.replica import Reply
from tasks.model_clients.reply_fields import get_choices, get_mapping

UNFINISHED_THOUGHT = "unfinished thought"
REFUSED = "the judge refused to answer"
NO_REPLY = "reply without content"

_NUMBERED = re.compile(r"\S*\d\S*")


@dataclass(frozen=True, slots=True)
class Completion:
    """What the model wrote as one answer, or why it is not usable.

    Args:
        text: its words, without its thought.
        problem: why they are no answer.
        cut_off: they end at the limit of tokens.
        thought: there was a thought before them.
        steps: their tokens with probabilities, where the server tells.
    """

    text: str
    problem: str | None = None
    cut_off: bool = False
    thought: bool = False
    steps: tuple[TokenStep, ...] = ()


def read_completions(reply: Reply) -> list[Completion]:
    """What the model wrote, once an answer; at least one."""
    if not reply.is_answer:
        return [Completion(reply.message, _refusal(reply))]
    choices = get_choices(reply)
    # Some gateways tell of errors with the status of success.
    return [_read_choice(choice) for choice in choices] or [Completion(reply.message, NO_REPLY)]


def _refusal(reply: Reply) -> str:
    """The reason of a failed answer that a server's error leads to, without what differs from request to request."""
    if is_overflow(reply.message):
        return TOO_LONG
    status = f" ({reply.status})" if reply.status else ""
    return f"the judge server gave an error{status}: {_NUMBERED.sub('...', reply.message)}"


def _read_choice(choice: Mapping[str, Any]) -> Completion:
    message = get_mapping(choice, "message")
    text, thinking = _content(message)
    cut_off = choice.get("finish_reason") == "length"
    if refusal := message.get("refusal"):
        return Completion(str(refusal), REFUSED)
    if not text:
        return Completion(thinking, UNFINISHED_THOUGHT if thinking and cut_off else NO_REPLY)
    try:
        thought, rest = split_thought(text)
    except ValueError:
        return Completion(text, UNFINISHED_THOUGHT)
    return Completion(rest, None, cut_off, bool(thought or thinking), _steps(choice))


def _content(message: Mapping[str, Any]) -> tuple[str, str]:
    """What a message says, and its thought: as texts, or as a list of parts, as some servers have it."""
    content = message.get("content")
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    thoughts = [message.get("reasoning"), message.get("reasoning_content"), *(part.get("thinking") for part in parts)]
    thinking = next((thought for thought in map(_text, thoughts) if thought), "")
    return _text(content), thinking


def _text(content: Any) -> str:
    """A text, or what the parts of a list have of it."""
    if isinstance(content, str):
        return content
    parts = [part.get("text") for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    return "".join(part for part in parts if isinstance(part, str))


def _steps(choice: Mapping[str, Any]) -> tuple[TokenStep, ...]:
    """The tokens of an answer; none where they are not told as the protocol has it."""
    tokens = get_mapping(choice, "logprobs").get("content") or ()
    try:
        return tuple(
            TokenStep(*_token(token), [_token(other) for other in token.get("top_logprobs") or ()]) for token in tokens
        )
    except (AttributeError, KeyError, TypeError):
        return ()


def _token(token: Mapping[str, Any]) -> tuple[str, float]:
    """A token and its probability; 0 where a server writes null, or what is no number, for what it ruled out.

    Raises:
        TypeError: it is no token with a number.
    """
    text, logarithm = token["token"], token.get("logprob")
    if not isinstance(text, str):
        raise TypeError(f"a token is a text, got {type(text).__name__}")
    if logarithm is None or math.isnan(logarithm):
        return text, 0.0
    return text, math.exp(min(logarithm, 0.0))
