"""Send several conversations in one request, to the batch endpoint of vLLM, and take its reply apart.

`POST /v1/chat/completions/batch` takes N conversations with one set of parameters and returns one choice for each. The
server applies its chat template to each of them, as it does to a single request. It tells the tokens of all
conversations together, and not how many of them were cached; see docs/design/batch-endpoint.md.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from tasks.models.clients.replica import Reply, get_choices, get_count

BATCH = "chat/completions/batch"
"""Path of the endpoint below `/v1`."""

NO_SUCH_ENDPOINT = (404, 405, 501)
"""Statuses of a server, or of a gateway before it, that lacks the endpoint."""

_RETURNED = "return_token_ids"
"""A field that makes vLLM return the tokens of each reply, which are counted."""


@dataclass(frozen=True, slots=True)
class Companions:
    """The requests with which a request may be sent together.

    Args:
        key: Digest of the parameters; requests with equal keys differ in their messages and their token limit alone.
        limit_field: Name of the field with the token limit. A request of several conversations has the largest one.
        most: Maximum number of conversations in one request.
    """

    key: Hashable
    limit_field: str
    most: int


def join_bodies(bodies: Sequence[Mapping[str, Any]], limit_field: str) -> dict[str, Any]:
    """Return the body of one request with the conversations of several.

    Args:
        bodies: Bodies with equal parameters; at least one.
        limit_field: Name of the field with the token limit.

    >>> one, other = ({"messages": [{"content": text}], "max_tokens": n} for text, n in (("a", 8), ("b", 16)))
    >>> join_bodies([one, other], "max_tokens")["max_tokens"]
    16
    """
    messages = [body["messages"] for body in bodies]
    limit = max(body[limit_field] for body in bodies)
    return {**bodies[0], "messages": messages, limit_field: limit, _RETURNED: True}


def split_reply(reply: Reply, bodies: Sequence[Mapping[str, object]]) -> list[Reply] | None:
    """Return the reply to each conversation; None if the reply is not one choice for each.

    Tokens of prompts are divided in proportion to their characters, tokens of replies too where the server does not
    return them. The sums are exact. Only the first reply counts as a request.

    Args:
        bodies: Bodies of the single requests, in the order of the conversations.
    """
    choices = {choice.get("index"): choice for choice in get_choices(reply)}
    if choices.keys() != set(range(len(bodies))) or len(reply.content["choices"]) != len(bodies):
        return None
    ordered = [choices[i] for i in range(len(bodies))]
    prompts = _divide(get_count(reply, "prompt_tokens"), [_characters(body) for body in bodies])
    written = [choice.get("token_ids") for choice in ordered]
    total = get_count(reply, "completion_tokens")
    outputs = [len(tokens) for tokens in written if isinstance(tokens, list)]
    if len(outputs) < len(bodies) or sum(outputs) != total:
        outputs = _divide(total, [max(1, len(str(choice.get("message")))) for choice in ordered])
    named = {"model": reply.content["model"]} if "model" in reply.content else {}
    return [
        Reply(
            reply.status,
            {**named, "choices": [choice], "usage": {"prompt_tokens": prompt, "completion_tokens": output}},
            reply.seconds,
            requests=int(i == 0),
            conversations=len(bodies),
        )
        for i, (choice, prompt, output) in enumerate(zip(ordered, prompts, outputs, strict=True))
    ]


def _characters(body: Mapping[str, Any]) -> int:
    return sum([len(message["content"]) for message in body["messages"]]) or 1


def _divide(total: int, shares: Sequence[int]) -> list[int]:
    """Divide a number in proportion to shares, into whole numbers with exactly this sum.

    >>> _divide(10, [1, 1, 1])
    [3, 3, 4]
    """
    whole = sum(shares)
    ends = [total * part // whole for part in accumulate(shares)]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]
