"""Measure how many tokens per second a judge server reads and writes: two questions, one for each."""

import time
import uuid
from typing import Any

import httpx

SENTENCES, WRITTEN_TOKENS = 24, 48
"""Sentences of a prompt that the server has not seen, and tokens of a reply: a few seconds each on two processors."""

_TIMEOUT = 300.0


def measure_speed(url: str, model: str) -> tuple[float, float] | None:
    """Return the prompt tokens that a server reads and the tokens that it writes per second; None if it does not tell.

    Args:
        url: Its `/v1` URL.
        model: Name of the model.
    """
    prompt = f"{uuid.uuid4()} {'The clerk noted an arrival at the gate. ' * SENTENCES}Go on with the story."
    try:
        with httpx.Client(timeout=_TIMEOUT, trust_env=False) as client:
            read = _ask(client, url, model, prompt, 1)
            written = _ask(client, url, model, prompt, WRITTEN_TOKENS)
    except (httpx.HTTPError, KeyError, TypeError, ValueError):
        return None
    return (read[0] / read[2], written[1] / written[2]) if read[0] > 0 and written[1] > 1 else None


def describe_speed(speed: tuple[float, float]) -> str:
    """Return a measured speed in words.

    >>> describe_speed((51.3, 12.1))
    'reads 51 and writes 12 tokens per second'
    """
    return f"reads {speed[0]:,.0f} and writes {speed[1]:,.0f} tokens per second"


def _ask(client: httpx.Client, url: str, model: str, prompt: str, tokens: int) -> tuple[int, int, float]:
    """Return the prompt tokens that were not cached, the tokens of the reply, and the seconds of a request."""
    messages = [{"role": "user", "content": prompt}]
    body = {"model": model, "messages": messages, "max_tokens": tokens, "temperature": 0.0, "ignore_eos": True}
    started = time.perf_counter()
    reply = client.post(f"{url}/chat/completions", json=body).raise_for_status()
    seconds = time.perf_counter() - started
    usage: dict[str, Any] = reply.json()["usage"]
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return usage["prompt_tokens"] - cached, usage["completion_tokens"], seconds
