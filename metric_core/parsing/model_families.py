"""Derive the family of a model from its name."""

import re

FAMILIES = {
    "openai": r"gpt|chatgpt|o[134]\b|davinci",
    "anthropic": r"claude",
    "google": r"gemini|gemma|palm",
    "meta": r"llama",
    "qwen": r"qwen|qwq",
    "mistral": r"mistral|mixtral|ministral|magistral",
    "deepseek": r"deepseek",
    "microsoft": r"phi",
    "cohere": r"command|aya",
    "ibm": r"granite",
}
"""Family -> how the names of its models begin, or a word in them does."""


def family_of(model: str) -> str | None:
    """Return the family of a model; None for a name that does not tell it.

    A model that was distilled from one family into another belongs to the first that its name has.

    >>> family_of("Qwen/Qwen3-8B"), family_of("gpt-4o-mini"), family_of("minicheck-7b")
    ('qwen', 'openai', None)
    """
    found = {
        place.start(): family
        for family, names in FAMILIES.items()
        if (place := re.search(rf"(?<![a-z])(?:{names})", model.lower())) is not None
    }
    return found[min(found)] if found else None
