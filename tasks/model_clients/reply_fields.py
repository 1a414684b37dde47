"""Read the fields of replies in the OpenAI protocol; a field of another type counts as missing."""

from collections.abc import Mapping
from typing import Any

from tasks.model_clients.replica import Reply

_DETAILS = {"cached_tokens": "prompt_tokens_details", "reasoning_tokens": "completion_tokens_details"}


def get_choices(reply: Reply) -> list[Mapping[str, Any]]:
    """Return the choices in a reply; an error has none.

    >>> get_choices(Reply(200, {"choices": [{"index": 0}, None]}, 0.1)), get_choices(Reply(200, {"choices": "no"}, 0.1))
    ([{'index': 0}], [])
    """
    choices = reply.content.get("choices") if reply.is_answer else None
    return [choice for choice in choices if isinstance(choice, Mapping)] if isinstance(choices, list) else []


def get_model(reply: Reply) -> str | None:
    """Return the model that a reply names; None if it names none.

    >>> get_model(Reply(200, {"model": "Qwen/Qwen3-8B"}, 0.1))
    'Qwen/Qwen3-8B'
    """
    name = reply.content.get("model") if reply.is_answer else None
    return name if isinstance(name, str) and name else None


def get_mapping(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the object with a name; an empty one if there is none."""
    value = content.get(name)
    return value if isinstance(value, Mapping) else {}


def get_count(reply: Reply, name: str) -> int:
    """Return a count from the `usage` of a reply; 0 if it is not reported.

    >>> get_count(Reply(200, {"usage": {"prompt_tokens": 7}}, 0.1), "prompt_tokens")
    7
    """
    return get_reported_count(reply, name) or 0


def get_counts(reply: Reply) -> tuple[int, int, int]:
    """Return the prompt tokens, the cached ones of these and the output tokens of a reply; 0 where none are reported.

    >>> get_counts(Reply(200, {"usage": {"prompt_tokens": 7, "completion_tokens": 1}}, 0.1))
    (7, 0, 1)
    """
    usage = reply.content.get("usage") if reply.is_answer else None
    if not isinstance(usage, Mapping):
        return 0, 0, 0
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    return _count(usage.get("prompt_tokens")), _count(cached), _count(usage.get("completion_tokens"))


def _count(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 0


def get_reported_count(reply: Reply, name: str) -> int | None:
    """Return a count from the `usage` of a reply; None if it is not reported."""
    if not reply.is_answer:
        return None
    usage = get_mapping(reply.content, "usage")
    value = (get_mapping(usage, _DETAILS[name]) if name in _DETAILS else usage).get(name)
    return value if type(value) is int and value >= 0 else None
