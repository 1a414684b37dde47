"""Read the completions of a server's reply, without reasoning, or the reason why there are none."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metric_core.prompts.reasoning import split_thought
from tasks.models.clients.replica import Reply, get_choices, get_mapping
from tasks.models.judges.openai.context_window import TOO_LONG, is_overflow
from tasks.models.judges.openai.label_probabilities import TokenStep

UNFINISHED_THOUGHT = "unfinished thought"
REFUSED = "the judge refused to answer"
NO_REPLY = "reply without content"

_ROUNDING = 1e-3
"""Largest log-probability that rounding explains."""

_LARGEST_EXCESS = 0.02
_NEVER = 1e-30
_SUSPICIOUS = 4
"""Number of tokens whose equal probabilities are not a coincidence; half precision makes pairs equal."""

_NUMBERED = re.compile(r"\S*\d\S*")


@dataclass(frozen=True, slots=True)
class Completion:
    """One completion of a reply, or the reason why it is not usable.

    Args:
        text: The text, without reasoning.
        problem: The reason why the text is not an answer; None if it may be one.
        cut_off: True if the text ends at the token limit.
        thought: True if reasoning preceded the text.
        steps: The tokens with their probabilities; empty if the server does not report them.
        impossible: Reason why the log-probabilities cannot be those of a language model; None if they can.
    """

    text: str
    problem: str | None = None
    cut_off: bool = False
    thought: bool = False
    steps: tuple[TokenStep, ...] = ()
    impossible: str | None = None


def read_completions(reply: Reply) -> list[Completion]:
    """Return the completions of a reply, at least one."""
    if not reply.is_answer:
        return [Completion(reply.message, _error_reason(reply))]
    choices = get_choices(reply)
    # Some gateways report errors with status 200.
    return [_read_choice(choice) for choice in choices] or [Completion(reply.message, NO_REPLY)]


def is_readable(reply: Reply) -> bool:
    """Return whether the model's words can be read in a reply: an answer, or a refusal to give one."""
    return reply.is_answer and all(done.problem in (None, REFUSED) for done in read_completions(reply))


def _error_reason(reply: Reply) -> str:
    """Return the reason for a failed answer, without numbers, which differ from request to request."""
    if reply.unread is not None:
        return reply.unread
    if is_overflow(reply.message):
        return TOO_LONG
    status = f" ({reply.status})" if reply.status else ""
    return f"the judge server gave an error{status}: {_NUMBERED.sub('...', reply.message)}"


def _read_choice(choice: Mapping[str, object]) -> Completion:
    message = get_mapping(choice, "message")
    text, reasoning = _split_reasoning(message)
    cut_off = choice.get("finish_reason") == "length"
    if refusal := message.get("refusal"):
        return Completion(str(refusal), REFUSED)
    if not text:
        return Completion(reasoning, UNFINISHED_THOUGHT if reasoning and cut_off else NO_REPLY, cut_off)
    try:
        thought, rest = split_thought(text)
    except ValueError:
        return Completion(text, UNFINISHED_THOUGHT, cut_off)
    has_thought = bool(thought or reasoning)
    try:
        return Completion(rest, None, cut_off, has_thought, _token_steps(choice))
    except _ImpossibleError as error:
        return Completion(rest, None, cut_off, has_thought, impossible=str(error))


def _split_reasoning(message: Mapping[str, object]) -> tuple[str, str]:
    """Return the text of a message and its reasoning; some servers send lists of parts instead of texts."""
    content = message.get("content")
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    thoughts = [message.get("reasoning"), message.get("reasoning_content"), *(part.get("thinking") for part in parts)]
    reasoning = next((thought for thought in map(_join_parts, thoughts) if thought), "")
    return _join_parts(content), reasoning


def _join_parts(content: Any) -> str:
    """Return a text unchanged, or the joined texts of a list of parts."""
    if isinstance(content, str):
        return content
    parts = [part.get("text") for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    return "".join(part for part in parts if isinstance(part, str))


class _ImpossibleError(Exception):
    """Log-probabilities that no language model has."""


def _token_steps(choice: Mapping[str, object]) -> tuple[TokenStep, ...]:
    """Return the tokens of a choice; none if they do not follow the protocol.

    Raises:
        _ImpossibleError: The numbers cannot be log-probabilities.
    """
    tokens = get_mapping(choice, "logprobs").get("content") or ()
    try:
        steps = tuple(
            TokenStep(*_parse_token(token), _parse_tokens(token.get("top_logprobs") or ())) for token in tokens
        )
    except (AttributeError, KeyError, TypeError):
        return ()
    for step in steps:
        problem = check_distribution([probability for _, probability in step.top])
        if problem is not None:
            raise _ImpossibleError(problem)
    return steps


def _parse_tokens(tokens: Sequence[Mapping[str, object]]) -> list[tuple[str, float]]:
    """Return each token and its probability; see `_parse_token`."""
    parsed = []
    for token in tokens:
        text, logprob = token["token"], token.get("logprob")
        if type(text) is str and type(logprob) is float and logprob <= 0.0:  # the usual case, twenty times per answer
            parsed.append((text, math.exp(logprob)))
        else:
            parsed.append(_parse_token(token))
    return parsed


def _parse_token(token: Mapping[str, Any]) -> tuple[str, float]:
    """Return a token and its probability; 0 where a server writes null for an excluded token.

    Raises:
        TypeError: The token is not a text, or its log-probability is not a number.
        _ImpossibleError: The number cannot be a log-probability.
    """
    text, logprob = token["token"], token.get("logprob")
    if not isinstance(text, str):
        raise TypeError(f"a token must be a text, got {type(text).__name__}")
    if logprob is None:
        return text, 0.0
    if math.isnan(logprob):
        raise _ImpossibleError("some are not numbers (NaN)")
    if logprob > _ROUNDING:
        raise _ImpossibleError(f"some are above 0, such as {logprob:.4g}")
    return text, math.exp(min(logprob, 0.0))


def check_distribution(probabilities: Sequence[float]) -> str | None:
    """Return why probabilities of different tokens in one place are those of no distribution; None if they may be.

    Args:
        probabilities: Probabilities of the top tokens.

    >>> check_distribution([0.5, 0.25]), check_distribution([0.75, 0.5])
    (None, 'the probabilities of different tokens add up to 1.25')
    """
    total = math.fsum(probabilities)
    if total > 1 + _LARGEST_EXCESS:
        return f"the probabilities of different tokens add up to {total:.4g}"
    possible = [probability for probability in probabilities if probability > _NEVER]
    if len(possible) >= _SUSPICIOUS and possible[0] == possible[-1] and len(set(possible)) == 1:
        return f"{len(possible)} different tokens are all equally likely"
    return None
