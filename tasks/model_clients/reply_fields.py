"""Reads what the OpenAI protocol has in a reply; whatever has another shape there counts as missing."""

from collections.abc import Mapping
from typing import Any

from tasks.model_clients.replica import Reply

_DETAILS = {"cached_tokens": "prompt_tokens_details"}


def choices_of(reply: Reply) -> list[Mapping[str, Any]]:
    """The answers in a reply; none in one that is no answer.

    >>> choices_of(Reply(200, {"choices": [{"index": 0}, None]}, 0.1)), choices_of(Reply(200, {"choices": "no"}, 0.1))
    ([{'index': 0}], [])
    """
    choices = reply.content.get("choices") if reply.is_answer else None
    return [choice for choice in choices if isinstance(choice, Mapping)] if isinstance(choices, list) else []


def mapping_in(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """What stands under a name, if it is an object; else an empty one."""
    value = content.get(name)
    return value if isinstance(value, Mapping) else {}


def count_in(reply: Reply, name: str) -> int:
    """One of the counts in the `usage` of a reply; 0 if it does not tell.

    >>> count_in(Reply(200, {"usage": {"prompt_tokens": 7}}, 0.1), "prompt_tokens")
    7
    """
    told = told_count(reply, name)
    return told or 0


def told_count(reply: Reply, name: str) -> int | None:
    """As `count_in`; None if the reply does not tell."""
    if not reply.is_answer:
        return None
    usage = mapping_in(reply.content, "usage")
    value = (mapping_in(usage, _DETAILS[name]) if name in _DETAILS else usage).get(name)
    return value if type(value) is int and value >= 0 else None
