"""Parse a server's replies into answers, without repairing them; every answer carries its raw reply."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator

from metric_core.prompts.replies import parse_json_reply
from metric_core.records import AnswerStatus
from tasks.models.clients.replica import Reply, get_model, usage_of
from tasks.models.judges.openai.completion import Completion, read_completions
from tasks.models.judges.openai.label_probabilities import decide_label, label_probabilities
from tasks.models.judges.openai.plain_label import parse_plain_label
from tasks.models.judges.openai.request_body import ANSWER, ANSWER_FRAME, serialize_labels
from tasks.models.judges.openai.server_features import ChoiceConstraint, ServerFeatures
from tasks.models.judges.protocol import ChoiceAnswer, GenerateAnswer, is_storable
from tasks.runtime.usage import Usage

CUT_OFF = "reply cut off at the token limit"
ENDLESS = "reply without end: it fills its list"
NO_JSON = "reply is not one JSON value"
OFF_SCHEMA = "reply does not fit the schema"
OTHER_MODEL = "reply of another model than was asked"
HALF_CHARACTER = "reply holds half of a character"
NO_LABEL = "reply is none of the labels"


def parse_choice_answer(
    replies: Sequence[Reply], labels: Sequence[str], votes: int, features: ServerFeatures
) -> ChoiceAnswer:
    """Parse the answer to a choice question.

    Args:
        replies: One reply with all votes, or one reply per vote.
        votes: Number of votes asked for.
        features: Features of the server, which determine how it was asked.
    """
    if votes == 1 and len(replies) == 1 and (answer := parse_plain_label(replies[0], labels, features)) is not None:
        return answer
    if (other := find_other_model(replies, features)) is not None:
        reason, usage = OTHER_MODEL, _usage(replies, features.cached_tokens)
        return ChoiceAnswer(AnswerStatus.FAILED, reason=reason, usage=usage, warning=other)
    completions = [completion for reply in replies for completion in read_completions(reply)][:votes]
    parsed = [_parse_label(completion, labels, features.choice) for completion in completions]
    usage = _usage(replies, features.cached_tokens)
    reply = "\n".join(completion.text for completion in completions)
    if not any(parsed):
        reason = next((completion.problem for completion in completions if completion.problem), NO_LABEL)
        unfinished = any(completion.cut_off and completion.problem for completion in completions)
        cut_off = usage.output_tokens if unfinished else None
        return ChoiceAnswer(AnswerStatus.FAILED, reason=reason, reply=reply, usage=usage, cut_off=cut_off)
    padded = (*parsed, *[None] * (votes - len(parsed)))
    impossible = next((completion.impossible for completion in completions if completion.impossible), None)
    probabilities = None if impossible else _mean(_probabilities(completions, labels, features))
    # Several votes are samples; some fall on a less probable label.
    votes_given = (decide_label(padded[0], probabilities),) if votes == 1 and padded[0] is not None else padded
    return ChoiceAnswer(
        AnswerStatus.ANSWERED,
        votes_given,
        probabilities,
        reply=reply,
        usage=usage,
        warning=impossible and describe_impossible(impossible),
    )


def describe_impossible(reason: str) -> str:
    """Return the warning about log-probabilities that no language model has."""
    return (
        f"the judge server's log-probabilities are impossible ({reason}), so its probabilities are not used: verdicts "
        "are its labels. Check the server, or the gateway before it"
    )


def find_other_model(replies: Sequence[Reply], features: ServerFeatures) -> str | None:
    """Return a warning if a reply names a model that the server did not name when it was probed; None otherwise."""
    known = {features.model, *features.reply_models}
    other = next((name for reply in replies if (name := get_model(reply)) is not None and name not in known), None)
    if other is None:
        return None
    return (
        f"a reply of the judge server names the model {other!r}, wanted {' or '.join(map(repr, sorted(known)))}; such "
        "replies are not used. Check what the server, or the gateway before it, serves"
    )


def parse_generate_answer(
    reply: Reply, schema: Mapping[str, object], limit: int | None = None, tells_cached: bool = False
) -> GenerateAnswer:
    """Parse the answer to a generate question, whose reply must be one JSON value that fits the schema.

    Args:
        schema: JSON schema of the value.
        limit: Token limit of the reply, for servers that do not report how many tokens they wrote.
        tells_cached: True if the server reports how many tokens it found in its prefix cache.
    """
    (completion, *_) = read_completions(reply)
    usage = _usage([reply], tells_cached)
    if completion.cut_off:
        reason, tokens = completion.problem or CUT_OFF, usage.output_tokens or limit
        return GenerateAnswer(AnswerStatus.FAILED, reason=reason, reply=completion.text, usage=usage, cut_off=tokens)
    problem = completion.problem
    if problem is None:
        try:
            value = parse_json_reply(completion.text)
        except ValueError:
            problem = NO_JSON
        else:
            if matches_schema(value, schema) and is_storable(value):
                return GenerateAnswer(AnswerStatus.ANSWERED, value, reply=completion.text, usage=usage)
            problem = OFF_SCHEMA if is_storable(value) else HALF_CHARACTER
    return GenerateAnswer(AnswerStatus.FAILED, reason=problem, reply=completion.text, usage=usage)


def matches_schema(value: Any, schema: Mapping[str, object]) -> bool:
    """Return whether a value fits a JSON schema.

    >>> matches_schema({"score": 3}, {"type": "object", "properties": {"score": {"type": "integer", "maximum": 2}}})
    False
    """
    return bool(_validator(json.dumps(schema, sort_keys=True)).is_valid(value))


@lru_cache(maxsize=64)
def _validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema))


def _parse_label(completion: Completion, labels: Sequence[str], constraint: ChoiceConstraint) -> str | None:
    """Return the label that was written in full, or whose unique prefix was written; None if there is none."""
    if completion.problem is not None:
        return None
    if constraint.json is not None:
        try:
            value = parse_json_reply(completion.text)
        except ValueError:
            return None
        label = value.get(ANSWER) if isinstance(value, Mapping) else None
        return label if label in labels else None
    text = completion.text.strip()
    if constraint is ChoiceConstraint.NONE:
        text = text.strip("\"'`*.")
        return _single_label(label for label in labels if label.casefold() == text.casefold())
    if text in labels:
        return text
    return _single_label(label for label in labels if text and label.casefold().startswith(text.casefold()))


def _single_label(labels: Iterable[str]) -> str | None:
    matches = list(labels)
    return matches[0] if len(matches) == 1 else None


def _probabilities(
    completions: Sequence[Completion], labels: Sequence[str], features: ServerFeatures
) -> list[Mapping[str, float]]:
    """Return the label probabilities of each completion that has some; there are none after reasoning."""
    frame = ANSWER_FRAME if features.choice.json is not None else None
    texts = serialize_labels(labels, features.choice)
    by_completion = [
        label_probabilities(completion.steps, texts, frame)
        for completion in completions
        if completion.steps and not completion.thought
    ]
    return [probabilities for probabilities in by_completion if probabilities is not None]


def _mean(distributions: Sequence[Mapping[str, float]]) -> dict[str, float] | None:
    if not distributions:
        return None
    return {
        label: math.fsum(probabilities[label] for probabilities in distributions) / len(distributions)
        for label in distributions[0]
    }


def _usage(replies: Sequence[Reply], tells_cached: bool) -> Usage:
    first, *others = [usage_of(reply, tells_cached) for reply in replies]
    return sum(others, first)
