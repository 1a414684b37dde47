"""What a server's replies say: answers, or why there are none. Nothing is repaired, and every reply is kept."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator

from metric_core.records import AnswerStatus
from metric_core.replies import parse_json_reply
from metric_core.thoughts import split_thought
from tasks.judge.protocol import ChoiceAnswer, GenerateAnswer
from tasks.judge.server.bodies import ANSWER, ANSWER_FRAME, written
from tasks.judge.server.features import ChoiceConstraint, ServerFeatures
from tasks.judge.server.labels import Step, label_probabilities
from tasks.judge.server.window import TOO_LONG, is_overflow
from tasks.servers.replica import Reply
from tasks.usage import Usage

CUT_OFF = "reply cut off at the token limit"
UNFINISHED_THOUGHT = "unfinished thought"
REFUSED = "the judge refused to answer"
NO_JSON = "reply is not one JSON value"
OFF_SCHEMA = "reply does not fit the schema"
NO_LABEL = "reply is none of the labels"
NO_REPLY = "reply without content"

_NUMBERED = re.compile(r"\S*\d\S*")


@dataclass(frozen=True, slots=True)
class _Words:
    """What the model wrote as one answer, or why it is not usable."""

    text: str
    problem: str | None = None
    cut_off: bool = False
    thought: bool = False
    steps: tuple[Step, ...] = ()


def choice_answer(
    replies: Sequence[Reply], labels: Sequence[str], votes: int, features: ServerFeatures
) -> ChoiceAnswer:
    """The answer to a choice question.

    Args:
        replies: one with all votes, or one a vote.
        labels: the allowed answers.
        votes: how many were asked for.
        features: how the server was asked.
    """
    words = [said for reply in replies for said in _words(reply)][:votes]
    votes_given = [_label(said, labels, features.choice) for said in words]
    usage = _usage(replies)
    reply = "\n".join(said.text for said in words)
    if not any(votes_given):
        reason = next((said.problem for said in words if said.problem), NO_LABEL)
        return ChoiceAnswer(AnswerStatus.FAILED, reason=reason, reply=reply, usage=usage)
    padded = (*votes_given, *[None] * (votes - len(votes_given)))
    return ChoiceAnswer(
        AnswerStatus.ANSWERED, padded, _mean(_probabilities(words, labels, features)), reply=reply, usage=usage
    )


def generate_answer(reply: Reply, schema: Mapping[str, Any]) -> GenerateAnswer:
    """The answer to a generate question."""
    (said, *_) = _words(reply)
    usage = _usage([reply])
    problem = said.problem or (CUT_OFF if said.cut_off else None)
    if problem is None:
        try:
            value = parse_json_reply(said.text)
        except ValueError:
            problem = NO_JSON
        else:
            if fits(value, schema):
                return GenerateAnswer(AnswerStatus.ANSWERED, value, reply=said.text, usage=usage)
            problem = OFF_SCHEMA
    return GenerateAnswer(AnswerStatus.FAILED, reason=problem, reply=said.text, usage=usage)


def fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a value fits a JSON schema.

    >>> fits({"score": 3}, {"type": "object", "properties": {"score": {"type": "integer", "maximum": 2}}})
    False
    """
    return bool(_validator(json.dumps(schema, sort_keys=True)).is_valid(value))


@lru_cache(maxsize=64)
def _validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema))


def _words(reply: Reply) -> list[_Words]:
    """What the model wrote, once an answer; at least one."""
    if not reply.is_answer:
        return [_Words(reply.message, _refusal(reply))]
    choices = reply.content.get("choices")
    found = [_said(choice) for choice in choices if isinstance(choice, Mapping)] if isinstance(choices, list) else []
    return found or [_Words("", NO_REPLY)]


def _refusal(reply: Reply) -> str:
    """The reason of a failed answer that a server's error leads to, without what differs from request to request."""
    if is_overflow(reply.message):
        return TOO_LONG
    status = f" ({reply.status})" if reply.status else ""
    return f"the judge server gave an error{status}: {_NUMBERED.sub('...', reply.message)}"


def _said(choice: Mapping[str, Any]) -> _Words:
    message = choice.get("message") or {}
    text = message.get("content") or ""
    cut_off = choice.get("finish_reason") == "length"
    thinking = message.get("reasoning") or message.get("reasoning_content") or ""
    if message.get("refusal"):
        return _Words(message["refusal"], REFUSED)
    if not text:
        return _Words(thinking, UNFINISHED_THOUGHT if thinking and cut_off else NO_REPLY)
    try:
        thought, rest = split_thought(text)
    except ValueError:
        return _Words(text, UNFINISHED_THOUGHT)
    return _Words(rest, None, cut_off, bool(thought or thinking), tuple(_steps(choice)))


def _steps(choice: Mapping[str, Any]) -> Iterable[Step]:
    for token in (choice.get("logprobs") or {}).get("content") or ():
        top = [(other["token"], _probability(other)) for other in token.get("top_logprobs") or ()]
        yield Step(token["token"], _probability(token), top)


def _probability(token: Mapping[str, Any]) -> float:
    """The probability of a token; 0 where a server writes null for what it ruled out."""
    logarithm = token.get("logprob")
    return math.exp(logarithm) if logarithm is not None else 0.0


def _label(said: _Words, labels: Sequence[str], how: ChoiceConstraint) -> str | None:
    """The label that was written, whole, or as the beginning of no other label where one token was asked for."""
    if said.problem is not None:
        return None
    if how is ChoiceConstraint.JSON_SCHEMA:
        try:
            value = parse_json_reply(said.text)
        except ValueError:
            return None
        label = value.get(ANSWER) if isinstance(value, Mapping) else None
        return label if label in labels else None
    text = said.text.strip()
    if how is ChoiceConstraint.NONE:
        text = text.strip("\"'`*.")
        return _only(label for label in labels if label.casefold() == text.casefold())
    if text in labels:
        return text
    return _only(label for label in labels if text and label.casefold().startswith(text.casefold()))


def _only(labels: Iterable[str]) -> str | None:
    found = list(labels)
    return found[0] if len(found) == 1 else None


def _probabilities(
    words: Sequence[_Words], labels: Sequence[str], features: ServerFeatures
) -> list[Mapping[str, float]]:
    """The probabilities of the labels, of each answer that has some. After a thought there are none."""
    frame = ANSWER_FRAME if features.choice is ChoiceConstraint.JSON_SCHEMA else None
    texts = written(labels, features.choice)
    found = [
        label_probabilities(said.steps, texts, features.top_logprobs, frame)
        for said in words
        if said.steps and not said.thought
    ]
    return [probabilities for probabilities in found if probabilities is not None]


def _mean(found: Sequence[Mapping[str, float]]) -> dict[str, float] | None:
    if not found:
        return None
    return {label: math.fsum(probabilities[label] for probabilities in found) / len(found) for label in found[0]}


def _usage(replies: Sequence[Reply]) -> Usage:
    counts = [reply.content.get("usage") or {} for reply in replies if reply.is_answer]
    return Usage(
        requests=sum(reply.requests for reply in replies),
        prompt_tokens=sum(count.get("prompt_tokens") or 0 for count in counts),
        cached_tokens=sum((count.get("prompt_tokens_details") or {}).get("cached_tokens") or 0 for count in counts),
        output_tokens=sum(count.get("completion_tokens") or 0 for count in counts),
        seconds=sum(reply.seconds for reply in replies),
    )
