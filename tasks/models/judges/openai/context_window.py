"""Check prompts against the model's context window, because a server may silently truncate a long prompt."""

import re

from metric_core.prompts.prompt_set import RenderedPrompt

TOO_LONG = "prompt longer than the judge's window"
"""The reason for a failed answer; the number of tokens is in the reply, so equal reasons can be counted."""

BYTES_PER_TOKEN = 3
"""A conservative ratio: English has more than 4 bytes per token, Chinese about 3."""

TEMPLATE_TOKENS = 64
"""An upper bound of the tokens that a chat template adds."""

MIN_REPLY_TOKENS = 256
"""Tokens that must be left for a JSON reply."""

_OVERFLOW = re.compile(
    r"maximum (?:context|model|input|sequence) length|context_length_exceeded|exceeds? (?:the )?(?:available )?"
    r"(?:model's )?(?:maximum )?context|context (?:size|window|length) .{0,40}exceeded|longer than the .{0,40}context"
    r"|(?:prompt|input) is too long|input token count .{0,20}exceeds|must have less than \d+ tokens"
    r"|`max_new_tokens` must be <= \d+",
    re.IGNORECASE,
)


def estimate_max_tokens(prompt: RenderedPrompt) -> int:
    """Return an upper bound of a prompt's tokens, except for texts such as long digit sequences.

    >>> estimate_max_tokens(RenderedPrompt("Judge.", "It rains.", ""))
    69
    """
    return len(f"{prompt.system}{prompt.user}".encode("utf-8", "replace")) // BYTES_PER_TOKEN + TEMPLATE_TOKENS


def remaining_tokens(tokens: int, wanted: int, window: int) -> int | None:
    """Return the token limit for a reply, or None if the prompt leaves too little of the context window.

    Args:
        tokens: Tokens of the prompt.
        wanted: Token limit of the reply if the context window is large enough.
        window: Tokens of the context window.

    >>> remaining_tokens(1000, 2048, 2048)
    1048
    >>> remaining_tokens(1900, 2048, 2048) is None
    True
    >>> remaining_tokens(2047, 1, 2048)
    1
    """
    left = window - tokens
    return min(wanted, left) if left >= min(wanted, MIN_REPLY_TOKENS) else None


def is_overflow(message: str) -> bool:
    """Return whether a server's error message says that the prompt is too long.

    >>> is_overflow("This model's maximum context length is 2048 tokens. However, you requested 1 output tokens and "
    ...             "your prompt contains at least 2050 input tokens.")
    True
    >>> is_overflow("temperature must be at least 0")
    False
    """
    return _OVERFLOW.search(message) is not None
