"""Find the model of a judge or embedder among the models that servers list."""

from collections.abc import Mapping
from typing import Any

from tasks.model_clients.jobs import UnusableError
from tasks.model_clients.replica import Reply


def list_models(replies: Mapping[str, Reply], model: str | None) -> list[Mapping[str, Any]]:
    """Return each server's entry for the named model, or for its only model, which must be the same on all servers.

    Args:
        replies: Replies to `/v1/models`, by the server's URL.
        model: Name of the model; None stands for the only model.

    Raises:
        UnusableError: A server does not have the model, or has several and none is named.
    """
    chosen: list[Mapping[str, Any]] = []
    for url, reply in replies.items():
        cards = _read_models(url, reply)
        names = ", ".join(cards) or "none"
        if model is None and len(cards) != 1:
            raise UnusableError(f"{url} serves {len(cards)} models; name one of them: {names}")
        model = model or next(iter(cards))
        if model not in cards:
            raise UnusableError(f"{url} does not serve the model {model!r}, but: {names}")
        chosen.append(cards[model])
    return chosen


def _read_models(url: str, reply: Reply) -> dict[str, Mapping[str, Any]]:
    if reply.status in (401, 403):
        raise UnusableError(
            f"{url} refuses the key ({reply.status}); "
            "make api_key refer to an environment variable or a Secret block with a valid key"
        )
    cards = reply.content.get("data") if reply.is_answer else None
    if not isinstance(cards, list):
        raise UnusableError(
            f"{url}/models gives no list of models ({reply.unread or reply.status}); "
            "the URL must be that of an OpenAI-compatible /v1"
        )
    return {card["id"]: card for card in cards if isinstance(card, Mapping) and isinstance(card.get("id"), str)}
