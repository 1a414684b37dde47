"""Whether a prompt fits into the model's window: a prompt that does not is never sent to be cut silently."""

import re

from metric_core.prompts.prompt_set import RenderedPrompt

BYTES_A_TOKEN = 3
"""Cautious: English has more than 4 bytes a token, Chinese about 3."""

TEMPLATE_TOKENS = 64
"""More than what a chat template adds."""

LEAST_ROOM = 256
"""Tokens that a reply of JSON must have room for."""

_OVERFLOW = re.compile(
    r"maximum (?:context|model|input|sequence) length|context_length_exceeded|exceeds? (?:the )?(?:available )?"
    r"(?:model's )?(?:maximum )?context|context (?:size|window|length) .{0,40}exceeded|longer than the .{0,40}context",
    re.IGNORECASE,
)
_WINDOW = re.compile(
    r"(?:maximum context length(?: is)?|maximum model length(?: of)?|context (?:size|window|length)(?: of| is)?)"
    r"\D{0,3}(\d+)",
    re.IGNORECASE,
)
_LENGTH = re.compile(
    r"(?:contains(?: at least)?|\(length|request has|resulted in|requested|request \(|input length of|prompt of)"
    r"\D{0,3}(\d+)(?: (?:input )?tokens)?(?! output)",
    re.IGNORECASE,
)


def longest_estimate(prompt: RenderedPrompt) -> int:
    """More tokens than a prompt has, but for texts that tokenizers take apart, such as long rows of digits.

    >>> longest_estimate(RenderedPrompt("Judge.", "It rains.", ""))
    69
    """
    return len(f"{prompt.system}{prompt.user}".encode("utf-8", "replace")) // BYTES_A_TOKEN + TEMPLATE_TOKENS


def room(tokens: int, wanted: int, window: int) -> int | None:
    """How many tokens a reply may have: as many as wanted, or what the prompt leaves of the window; None: too few.

    >>> room(1000, 2048, 2048)
    1048
    >>> room(1900, 2048, 2048) is None
    True
    >>> room(2047, 1, 2048)
    1
    """
    left = window - tokens
    return min(wanted, left) if left >= min(wanted, LEAST_ROOM) else None


def too_long(tokens: int | None, window: int | None) -> str:
    """The reason of a failed answer.

    >>> too_long(9000, 8192)
    "prompt longer than the judge's window (9000 of 8192 tokens)"
    >>> too_long(None, 8192)
    "prompt longer than the judge's window (8192 tokens)"
    """
    reason = "prompt longer than the judge's window"
    if window is None:
        return reason
    return f"{reason} ({window} tokens)" if tokens is None else f"{reason} ({tokens} of {window} tokens)"


def overflow(message: str, window: int | None) -> str | None:
    """The reason of a failed answer if a server's error says that the prompt is too long; None if it says otherwise.

    Args:
        message: the server's words.
        window: the window as far as it is known.

    >>> overflow("This model's maximum context length is 2048 tokens. However, you requested 1 output tokens and your "
    ...          "prompt contains at least 2050 input tokens.", None)
    "prompt longer than the judge's window (2050 of 2048 tokens)"
    >>> overflow("The decoder prompt (length 3012) is longer than the maximum model length of 2048.", None)
    "prompt longer than the judge's window (3012 of 2048 tokens)"
    >>> overflow("temperature must be at least 0", 2048) is None
    True
    """
    if not _OVERFLOW.search(message):
        return None
    said = _WINDOW.search(message)
    window = int(said[1]) if said else window
    lengths = [int(found) for found in _LENGTH.findall(message)]
    longer = [length for length in lengths if window is not None and length > window]
    return too_long(longer[0] if longer else None, window)
