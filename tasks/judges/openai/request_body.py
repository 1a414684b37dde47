"""What is sent for a question: the prompt, the sampling, and whatever holds the reply to its labels or schema."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from metric_core.judge_questions import ChoiceQuestion, GenerateQuestion, object_schema
from metric_core.prompts.prompt_set import RenderedPrompt
from tasks.judges.openai.request_mode import request_mode_of, sends_all_votes_at_once, vote_number
from tasks.judges.openai.server_features import ChoiceConstraint, JsonConstraint, ServerFeatures
from tasks.options.judge_server_options import ServerJudgeOptions

Body = dict[str, Any]

ANSWER = "answer"
ANSWER_FRAME = re.compile(rf'\s*\{{\s*"{ANSWER}"\s*:\s*"(?P<rest>(?:[^"\\]|\\.)*"?).*', re.DOTALL)
"""What stands around a label where a label is asked for as JSON."""

_SLACK = 8
"""Tokens that a reply may have besides its label where it is not held to it: spaces, quotes, braces."""


def choice_request_bodies(
    prompt: RenderedPrompt, question: ChoiceQuestion, features: ServerFeatures, options: ServerJudgeOptions
) -> list[Body]:
    """The requests for one label a vote: one request, or one a vote where the server gives one answer each."""
    labels, votes = question.labels, question.votes
    extra = choice_constraint(features.choice, labels)
    if features.top_logprobs and not options.thinking:
        extra |= {"logprobs": True, "top_logprobs": features.top_logprobs}
    limit = options.max_output_tokens if options.thinking else label_tokens(labels, features.choice)
    temperature = getattr(options, request_mode_of(question).temperature)
    common = _common(prompt, features, options) | extra | {features.limit_field: limit}
    if votes > 1 and sends_all_votes_at_once(features, options):
        return [common | {"n": votes} | _sampling(temperature, features, options.seed)]
    return [common | _sampling(temperature, features, options.seed + vote) for vote in range(votes)]


def generate_request_body(
    prompt: RenderedPrompt, question: GenerateQuestion, features: ServerFeatures, options: ServerJudgeOptions
) -> Body:
    """The request for JSON."""
    temperature = getattr(options, request_mode_of(question).temperature)
    return (
        _common(prompt, features, options)
        | json_constraint(features.json, question.schema)
        | {features.limit_field: options.max_output_tokens}
        | _sampling(temperature, features, options.seed + (vote_number(question.schema) or 0))
    )


def choice_constraint(how: ChoiceConstraint, labels: Sequence[str]) -> Body:
    """What holds a reply to the labels."""
    if how is ChoiceConstraint.STRUCTURED_OUTPUTS:
        return {"structured_outputs": {"choice": list(labels)}}
    if how is ChoiceConstraint.GUIDED_CHOICE:
        return {"guided_choice": list(labels)}
    if how is ChoiceConstraint.JSON_SCHEMA:
        schema = object_schema({ANSWER: {"type": "string", "enum": list(labels)}})
        return json_constraint(JsonConstraint.RESPONSE_FORMAT, schema)
    return {}


def json_constraint(how: JsonConstraint, schema: Mapping[str, Any]) -> Body:
    """What holds a reply to a schema."""
    if how is JsonConstraint.RESPONSE_FORMAT:
        named = {"name": ANSWER, "schema": dict(schema), "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    if how is JsonConstraint.STRUCTURED_OUTPUTS:
        return {"structured_outputs": {"json": dict(schema)}}
    if how is JsonConstraint.GUIDED_JSON:
        return {"guided_json": dict(schema)}
    return {}


def label_tokens(labels: Sequence[str], how: ChoiceConstraint) -> int:
    """How many tokens a label may take: one where its first character tells it from the others.

    A token has at least one byte, so a label never needs more tokens than it has bytes.

    >>> label_tokens(("yes", "no"), ChoiceConstraint.STRUCTURED_OUTPUTS)
    1
    >>> label_tokens(("score1", "score10"), ChoiceConstraint.STRUCTURED_OUTPUTS)
    8
    """
    firsts = {label[:1].casefold() for label in labels}
    longest = max(len(json.dumps(label)) - 2 for label in labels)
    if how is ChoiceConstraint.NONE:
        return longest + _SLACK
    if how is ChoiceConstraint.JSON_SCHEMA:
        return longest + len(f'{{ "{ANSWER}": "" }}') + _SLACK
    return 1 if len(firsts) == len(labels) and all(first.isascii() and first for first in firsts) else longest + 1


def serialize(labels: Sequence[str], how: ChoiceConstraint) -> dict[str, str]:
    """Label -> how a reply writes it; see `label_probabilities`."""
    if how is ChoiceConstraint.JSON_SCHEMA:
        return {label: json.dumps(label, ensure_ascii=False)[1:] for label in labels}
    return {label: label for label in labels}


def chat_messages(prompt: RenderedPrompt, system_role: bool) -> list[dict[str, str]]:
    """The messages of a prompt; one where the model knows no system message."""
    if system_role:
        return [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
    return [{"role": "user", "content": f"{prompt.system}\n\n{prompt.user}"}]


def _common(prompt: RenderedPrompt, features: ServerFeatures, options: ServerJudgeOptions) -> Body:
    switch: Body = {}
    if features.thinking_switch:
        switch = {"chat_template_kwargs": {"enable_thinking": options.thinking}}
    return {"model": features.model, "messages": chat_messages(prompt, features.system_role)} | switch


def _sampling(temperature: float, features: ServerFeatures, seed: int) -> Body:
    return {"temperature": temperature} | ({"seed": seed} if features.seed and temperature > 0 else {})
