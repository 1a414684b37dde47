"""What a judge server can do, found by trying it out; part of a run's record, because answers depend on it."""

from dataclasses import dataclass
from enum import StrEnum


class ChoiceConstraint(StrEnum):
    """How a reply is held to one of several labels, best first."""

    STRUCTURED_OUTPUTS = "structured_outputs"
    GUIDED_CHOICE = "guided_choice"
    JSON_SCHEMA = "json_schema"
    NONE = "none"


class JsonConstraint(StrEnum):
    """How a reply is held to a JSON schema, best first."""

    RESPONSE_FORMAT = "response_format"
    STRUCTURED_OUTPUTS = "structured_outputs"
    GUIDED_JSON = "guided_json"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ServerFeatures:
    """What a server can do with its model.

    Args:
        model: the model's name there.
        software: the server's name and version, as far as it tells; for people.
        window: tokens that the model can read and write; None where the server does not tell.
        system_role: whether prompts may have a system message.
        limit_field: the name of the field that bounds a reply's tokens.
        thinking_switch: whether the chat template's `enable_thinking` may be sent.
        choice: how a reply is held to a label.
        json: how a reply is held to a schema.
        top_logprobs: the most log-probabilities a token that the server gives, of those that are useful; 0: none.
        several: whether one request can have several answers.
        seed: whether sampling can be seeded.
        tokenizer: whether the server counts the tokens of a prompt.
        cached_tokens: whether it says how many tokens it found in its prefix cache.
        prompt_lists: whether `/v1/completions` takes several prompts at once; for people: no question is asked so,
            since the chat template is the server's.
    """

    model: str
    software: str = "an OpenAI-compatible server"
    window: int | None = None
    system_role: bool = True
    limit_field: str = "max_tokens"
    thinking_switch: bool = False
    choice: ChoiceConstraint = ChoiceConstraint.NONE
    json: JsonConstraint = JsonConstraint.NONE
    top_logprobs: int = 0
    several: bool = False
    seed: bool = False
    tokenizer: bool = False
    cached_tokens: bool = False
    prompt_lists: bool = False
