"""Reads what the OpenAI protocol has in a reply; whatever has another shape there counts as missing."""

from collections.abc import Mapping
from typing import Any

from tasks.model_clients.replica import Reply

_DETAILS = {"cached_tokens": "prompt_tokens_details"}


def get_choices(reply: Reply) -> list[Mapping[str, Any]]:
    """The answers in a reply; none in one that is no answer.

    >>> get_choices(Reply(200, {"choices": [{"index": 0}, None]}, 0.1)), get_choices(Reply(200, {"choices": "no"}, 0.1))
    ([{'index': 0}], [])
    """
    choices = reply.content.get("choices") if reply.is_answer else None
    return [choice for choice in choices if isinstance(choice, Mapping)] if isinstance(choices, list) else []


def get_mapping(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """What stands under a name, if it is an object; else an empty one."""
    value = content.get(name)
    return value if isinstance(value, Mapping) else {}


def get_count(reply: Reply, name: str) -> int:
    """One of the counts in the `usage` of a reply; 0 if it does not tell.

    >>> get_count(Reply(200, {"usage": {"prompt_tokens": 7}}, 0.1), "prompt_tokens")
    7
    """
    told = get_reported_count(reply, name)
    return told or 0


def get_reported_count(reply: Reply, name: str) -> int | None:
    """As `get_count`; None if the reply does not tell."""
    if not reply.is_answer:
        return None
    usage = get_mapping(reply.content, "usage")
    value = (get_mapping(usage, _DETAILS[name]) if name in _DETAILS else usage).get(name)
    return value if type(value) is int and value >= 0 else None
