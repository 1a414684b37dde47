"""Whether a prompt fits into the model's window: a prompt that does not is never sent to be cut silently."""

import re

from metric_core.prompts.prompt_set import RenderedPrompt

TOO_LONG = "prompt longer than the judge's window"
"""The reason of a failed answer; its reply tells how long, so that equal reasons can be counted."""

BYTES_A_TOKEN = 3
"""Cautious: English has more than 4 bytes a token, Chinese about 3."""

TEMPLATE_TOKENS = 64
"""More than what a chat template adds."""

LEAST_ROOM = 256
"""Tokens that a reply of JSON must have room for."""

_OVERFLOW = re.compile(
    r"maximum (?:context|model|input|sequence) length|context_length_exceeded|exceeds? (?:the )?(?:available )?"
    r"(?:model's )?(?:maximum )?context|context (?:size|window|length) .{0,40}exceeded|longer than the .{0,40}context"
    r"|(?:prompt|input) is too long|input token count .{0,20}exceeds|must have less than \d+ tokens"
    r"|`max_new_tokens` must be <= \d+",
    re.IGNORECASE,
)


def estimate_most_tokens(prompt: RenderedPrompt) -> int:
    """More tokens than a prompt has, but for texts that tokenizers take apart, such as long rows of digits.

    >>> estimate_most_tokens(RenderedPrompt("Judge.", "It rains.", ""))
    69
    """
    return len(f"{prompt.system}{prompt.user}".encode("utf-8", "replace")) // BYTES_A_TOKEN + TEMPLATE_TOKENS


def remaining_tokens(tokens: int, wanted: int, window: int) -> int | None:
    """How many tokens a reply may have: as many as wanted, or what the prompt leaves of the window; None: too few.

    >>> remaining_tokens(1000, 2048, 2048)
    1048
    >>> remaining_tokens(1900, 2048, 2048) is None
    True
    >>> remaining_tokens(2047, 1, 2048)
    1
    """
    left = window - tokens
    return min(wanted, left) if left >= min(wanted, LEAST_ROOM) else None


def is_overflow(message: str) -> bool:
    """Whether a server's error says that the prompt is too long.

    >>> is_overflow("This model's maximum context length is 2048 tokens. However, you requested 1 output tokens and "
    ...             "your prompt contains at least 2050 input tokens.")
    True
    >>> is_overflow("temperature must be at least 0")
    False
    """
    return _OVERFLOW.search(message) is not None
