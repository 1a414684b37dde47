"""The features of a judge server, found by probing; part of a run's manifest, because answers depend on them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class ChoiceConstraint(StrEnum):
    """The ways to constrain a reply to one of several labels, best first."""

    STRUCTURED_OUTPUTS = "structured_outputs"
    GUIDED_CHOICE = "guided_choice"
    GRAMMAR = "grammar"
    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    NONE = "none"

    @property
    def json(self) -> "JsonConstraint | None":
        """The constraint to a schema by which a label is requested as JSON; None if it is requested as such."""
        return _JSON_OF_CHOICE.get(self)


class JsonConstraint(StrEnum):
    """The ways to constrain a reply to a JSON schema, best first."""

    RESPONSE_FORMAT = "response_format"
    STRUCTURED_OUTPUTS = "structured_outputs"
    GUIDED_JSON = "guided_json"
    JSON_OBJECT = "json_object"
    NONE = "none"


_JSON_OF_CHOICE = {
    ChoiceConstraint.JSON_SCHEMA: JsonConstraint.RESPONSE_FORMAT,
    ChoiceConstraint.JSON_OBJECT: JsonConstraint.JSON_OBJECT,
}


@dataclass(frozen=True, slots=True)
class ServerFeatures:
    """The features of a server and its model.

    Args:
        model: The model's name on the server.
        software: The server's name and version, if known; informational.
        window: Tokens of the context window; None if unknown.
        reply_models: Other names of the model in the server's replies, which aliases and gateways give it.
        system_role: True if prompts may have a system message.
        limit_field: The name of the field that limits the tokens of a reply.
        thinking_switch: True if `enable_thinking` of the chat template may be sent.
        choice: The constraint of a reply to a label.
        json: The constraint of a reply to a schema.
        list_limits: True if this constraint enforces the length of lists (`minItems`, `maxItems`).
        reasons: True if the model reasons before it answers, although it was told not to.
        impossible_logprobs: Reason why the server's log-probabilities are not used; None if nothing is wrong with them.
        top_logprobs: The largest useful number of top log-probabilities per token that the server returns; 0 if none.
        several: True if one request can return several completions (`n`).
        seed: True if sampling can be seeded.
        tokenizer: True if the server counts the tokens of a prompt.
        cached_tokens: True if the server reports how many tokens it found in its prefix cache.
        prompt_lists: True if `/v1/completions` accepts several prompts at once; informational, because all questions
            go through the server's chat template.
        batches: True if one request can hold several conversations (the batch endpoint of vLLM), and its answers are
            those of single requests.
        unknown: Why a feature could not be probed, by its name; the feature then counts as missing.
    """

    model: str
    software: str = "an OpenAI-compatible server"
    window: int | None = None
    reply_models: tuple[str, ...] = ()
    system_role: bool = True
    limit_field: str = "max_tokens"
    thinking_switch: bool = False
    choice: ChoiceConstraint = ChoiceConstraint.NONE
    json: JsonConstraint = JsonConstraint.NONE
    list_limits: bool = False
    reasons: bool = False
    top_logprobs: int = 0
    impossible_logprobs: str | None = None
    several: bool = False
    seed: bool = False
    tokenizer: bool = False
    cached_tokens: bool = False
    prompt_lists: bool = False
    batches: bool = False
    unknown: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "ServerFeatures | None":
        """Return the features from their JSON; None if another release of rag-assay wrote it."""
        try:
            chosen = {"choice": ChoiceConstraint(content["choice"]), "json": JsonConstraint(content["json"])}
            return cls(**{**content, **chosen, "reply_models": tuple(content["reply_models"])})
        except (KeyError, TypeError, ValueError):
            return None
