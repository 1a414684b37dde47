"""Recognize conversations, which cannot be evaluated yet, to say so in place of a complaint about types."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

HINT = (
    "samples with several turns are planned; today a sample is one question with one response. Make one row per turn: "
    "the last user message as user_input (with the turns before it if it needs them), the answer as response"
)
"""Advice on evaluating conversations."""

_COLUMNS = frozenset({"messages", "conversation", "conversations", "turns", "dialogue", "dialog", "chat_history"})
_SPEAKERS = frozenset({"role", "type", "from", "speaker"})
_WORDS = frozenset({"content", "value", "text", "message"})


def count_messages(value: Any) -> int:
    """Return the number of messages if a value is a conversation, as a list or as JSON; 0 otherwise.

    >>> count_messages([{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}])
    2
    >>> count_messages('[{"type": "human", "content": "Why?"}]'), count_messages(["Why?"]), count_messages("[1]")
    (1, 0, 0)
    """
    if isinstance(value, str) and value.lstrip().startswith("[{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return 0
    if not isinstance(value, list | tuple) or not value or not all(isinstance(item, Mapping) for item in value):
        return 0
    has_words = all(_SPEAKERS.intersection(item) and _WORDS.intersection(item) for item in value)
    return len(value) if has_words else 0


def find_conversation_column(names: Iterable[str]) -> str | None:
    """Return the first column that holds conversations by its name.

    >>> find_conversation_column(["id", "Messages"])
    'Messages'
    """
    return next((name for name in names if name.casefold() in _COLUMNS), None)
