"""Build the request bodies of a question: prompt, sampling and the constraint to its labels or schema."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from metric_core.prompts.judge_questions import ChoiceQuestion, GenerateQuestion
from metric_core.prompts.prompt_set import RenderedPrompt
from metric_core.prompts.reply_schemas import object_schema
from tasks.models.judges.openai.reply_limits import max_reply_tokens
from tasks.models.judges.openai.request_mode import get_request_mode, vote_number
from tasks.models.judges.openai.server_features import ChoiceConstraint, JsonConstraint, ServerFeatures
from tasks.options.judge_server_options import ServerJudgeOptions

Body = dict[str, Any]

ANSWER = "answer"
ANSWER_FRAME = re.compile(rf'\s*\{{\s*"{ANSWER}"\s*:\s*"(?P<rest>(?:[^"\\]|\\.)*"?).*', re.DOTALL)
"""The JSON around a label, for labels that are requested as JSON."""

_LIST_LIMITS = ("minItems", "maxItems")
_SLACK = 8
"""Extra tokens for spaces, quotes and braces around a label that the server does not enforce."""


def choice_request_bodies(
    prompt: RenderedPrompt, question: ChoiceQuestion, features: ServerFeatures, options: ServerJudgeOptions
) -> list[Body]:
    """Build the requests for a choice question: one for all votes, or one per vote if the server requires it."""
    messages = chat_messages(prompt, features.system_role)
    return [{**parameters, "messages": messages} for parameters in choice_parameters(question, features, options)]


def choice_parameters(question: ChoiceQuestion, features: ServerFeatures, options: ServerJudgeOptions) -> list[Body]:
    """Build the requests for a choice question without their messages: all that its texts do not change."""
    labels, votes = question.labels, question.votes
    extra = choice_constraint(features.choice, labels)
    if features.top_logprobs and not options.thinking:
        extra |= {"logprobs": True, "top_logprobs": features.top_logprobs}
    limit = options.max_output_tokens if options.thinking else max_label_tokens(labels, features.choice)
    temperature = get_request_mode(question).temperature(options)
    common = common_fields(features, options) | extra | {features.limit_field: limit}
    if votes > 1 and features.several:
        return [common | {"n": votes} | _sampling(temperature, features, options.seed)]
    return [common | _sampling(temperature, features, options.seed + vote) for vote in range(votes)]


def generate_request_body(
    prompt: RenderedPrompt, question: GenerateQuestion, features: ServerFeatures, options: ServerJudgeOptions
) -> Body:
    """Build the request for a generate question."""
    temperature = get_request_mode(question).temperature(options)
    return (
        common_fields(features, options)
        | {"messages": chat_messages(prompt, features.system_role)}
        | json_constraint(features.json, question.schema if features.list_limits else _drop_limits(question.schema))
        | {features.limit_field: max_reply_tokens(question, features, options)}
        | _sampling(temperature, features, options.seed + (vote_number(question.schema) or 0))
    )


def choice_constraint(constraint: ChoiceConstraint, labels: Sequence[str]) -> Body:
    """Return the fields that constrain a reply to the labels."""
    if constraint is ChoiceConstraint.STRUCTURED_OUTPUTS:
        return {"structured_outputs": {"choice": list(labels)}}
    if constraint is ChoiceConstraint.GUIDED_CHOICE:
        return {"guided_choice": list(labels)}
    if constraint is ChoiceConstraint.GRAMMAR:
        return {"grammar": f"root ::= {' | '.join(map(json.dumps, labels))}"}
    if constraint.json is not None:
        return json_constraint(constraint.json, object_schema({ANSWER: {"type": "string", "enum": list(labels)}}))
    return {}


def json_constraint(constraint: JsonConstraint, schema: Mapping[str, object]) -> Body:
    """Return the fields that constrain a reply to a schema."""
    if constraint is JsonConstraint.RESPONSE_FORMAT:
        named = {"name": ANSWER, "schema": dict(schema), "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    if constraint is JsonConstraint.STRUCTURED_OUTPUTS:
        return {"structured_outputs": {"json": dict(schema)}}
    if constraint is JsonConstraint.GUIDED_JSON:
        return {"guided_json": dict(schema)}
    if constraint is JsonConstraint.JSON_OBJECT:
        return {"response_format": {"type": "json_object", "schema": dict(schema)}}
    return {}


def _drop_limits(schema: Any) -> Any:
    """Return a schema without the lengths of its lists, which some servers reject."""
    if isinstance(schema, Mapping):
        return {name: _drop_limits(value) for name, value in schema.items() if name not in _LIST_LIMITS}
    return [_drop_limits(value) for value in schema] if isinstance(schema, list) else schema


def max_label_tokens(labels: Sequence[str], constraint: ChoiceConstraint) -> int:
    """Return the token limit for a label: 1 if the first characters of all labels differ.

    A token has at least one byte, so a label never needs more tokens than it has bytes.

    >>> max_label_tokens(("yes", "no"), ChoiceConstraint.STRUCTURED_OUTPUTS)
    1
    >>> max_label_tokens(("score1", "score10"), ChoiceConstraint.STRUCTURED_OUTPUTS)
    8
    """
    firsts = {label[:1].casefold() for label in labels}
    longest = max(len(json.dumps(label)) - 2 for label in labels)
    if constraint is ChoiceConstraint.NONE:
        return longest + _SLACK
    if constraint.json is not None:
        return longest + len(f'{{ "{ANSWER}": "" }}') + _SLACK
    return 1 if len(firsts) == len(labels) and all(first.isascii() and first for first in firsts) else longest + 1


def serialize_labels(labels: Sequence[str], constraint: ChoiceConstraint) -> dict[str, str]:
    """Return a mapping from each label to its text in a reply; see `label_probabilities`."""
    if constraint.json is not None:
        return {label: json.dumps(label, ensure_ascii=False)[1:] for label in labels}
    return {label: label for label in labels}


def chat_messages(prompt: RenderedPrompt, system_role: bool) -> list[dict[str, str]]:
    """Return the messages of a prompt; a single one if the model does not support system messages."""
    if system_role:
        return [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
    return [{"role": "user", "content": f"{prompt.system}\n\n{prompt.user}"}]


def common_fields(features: ServerFeatures, options: ServerJudgeOptions) -> Body:
    """Return the fields that all requests to a server have in common, with the user's `extra_body`."""
    body = {"model": features.model} | options.extra_body
    if features.thinking_switch:
        template = options.extra_body.get("chat_template_kwargs", {})
        body["chat_template_kwargs"] = template | {"enable_thinking": options.thinking}
    return body


def _sampling(temperature: float, features: ServerFeatures, seed: int) -> Body:
    return {"temperature": temperature} | ({"seed": seed} if features.seed and temperature > 0 else {})
