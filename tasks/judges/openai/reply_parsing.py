"""What a server's replies say: answers, or why there are none. Nothing is repaired, and every reply is kept."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator

from metric_core.prompts.replies import parse_json_reply
from metric_core.records import AnswerStatus
from tasks.judges.openai.completion import Completion, read_completions
from tasks.judges.openai.label_probabilities import label_probabilities
from tasks.judges.openai.request_body import ANSWER, ANSWER_FRAME, serialize
from tasks.judges.openai.server_features import ChoiceConstraint, ServerFeatures
from tasks.judges.protocol import ChoiceAnswer, GenerateAnswer, is_storable
from tasks.model_clients.replica import Reply
from tasks.model_clients.reply_fields import get_count
from tasks.runtime.usage import Usage

CUT_OFF = "reply cut off at the token limit"
NO_JSON = "reply is not one JSON value"
OFF_SCHEMA = "reply does not fit the schema"
HALF_CHARACTER = "reply holds half of a character"
NO_LABEL = "reply is none of the labels"


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
    words = [said for reply in replies for said in read_completions(reply)][:votes]
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
    (said, *_) = read_completions(reply)
    usage = _usage([reply])
    problem = said.problem or (CUT_OFF if said.cut_off else None)
    if problem is None:
        try:
            value = parse_json_reply(said.text)
        except ValueError:
            problem = NO_JSON
        else:
            if matches_schema(value, schema) and is_storable(value):
                return GenerateAnswer(AnswerStatus.ANSWERED, value, reply=said.text, usage=usage)
            problem = OFF_SCHEMA if is_storable(value) else HALF_CHARACTER
    return GenerateAnswer(AnswerStatus.FAILED, reason=problem, reply=said.text, usage=usage)


def matches_schema(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a value fits a JSON schema.

    >>> matches_schema({"score": 3}, {"type": "object", "properties": {"score": {"type": "integer", "maximum": 2}}})
    False
    """
    return bool(_validator(json.dumps(schema, sort_keys=True)).is_valid(value))


@lru_cache(maxsize=64)
def _validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema))


def _label(said: Completion, labels: Sequence[str], how: ChoiceConstraint) -> str | None:
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
        return _only_known_labels(label for label in labels if label.casefold() == text.casefold())
    if text in labels:
        return text
    return _only_known_labels(label for label in labels if text and label.casefold().startswith(text.casefold()))


def _only_known_labels(labels: Iterable[str]) -> str | None:
    found = list(labels)
    return found[0] if len(found) == 1 else None


def _probabilities(
    words: Sequence[Completion], labels: Sequence[str], features: ServerFeatures
) -> list[Mapping[str, float]]:
    """The probabilities of the labels, of each answer that has some. After a thought there are none."""
    frame = ANSWER_FRAME if features.choice is ChoiceConstraint.JSON_SCHEMA else None
    texts = serialize(labels, features.choice)
    found = [label_probabilities(said.steps, texts, frame) for said in words if said.steps and not said.thought]
    return [probabilities for probabilities in found if probabilities is not None]


def _mean(found: Sequence[Mapping[str, float]]) -> dict[str, float] | None:
    if not found:
        return None
    return {label: math.fsum(probabilities[label] for probabilities in found) / len(found) for label in found[0]}


def _usage(replies: Sequence[Reply]) -> Usage:
    answered = [reply for reply in replies if reply.is_answer]
    return Usage(
        requests=sum(reply.requests for reply in replies),
        prompt_tokens=sum(get_count(reply, "prompt_tokens") for reply in answered),
        cached_tokens=sum(get_count(reply, "cached_tokens") for reply in answered),
        output_tokens=sum(get_count(reply, "completion_tokens") for reply in answered),
        seconds=sum(reply.seconds for reply in replies),
    )
