"""How JSON is read out of a judge's words: one complete value or none. A damaged reply is never repaired."""

import json
import re
from typing import Any, NoReturn

_FENCE = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)
_BRACKET = re.compile(r"[{\[]")


def parse_json_reply(text: str) -> Any:
    """The JSON value of a reply: the whole reply, or the only object or array in a code fence or in prose.

    A reply that was cut off is refused even where a part of it is complete, and so is one with two values: what the
    judge meant would be a guess.

    Args:
        text: the judge's words.

    Raises:
        ValueError: there is no complete JSON value, or more than one.

    >>> parse_json_reply('Here you go: {"score": 4} I hope it helps.')
    {'score': 4}
    >>> parse_json_reply('{"claims": [{"text": "It rains."}, {"text": "It')
    Traceback (most recent call last):
        ...
    ValueError: no complete JSON in the reply: '{"claims": [{"text": "It rains."}, {"text": "It'
    """
    fenced = _FENCE.findall(text)
    candidates = [text, *(fenced if len(fenced) == 1 else [])]
    for candidate in candidates:
        try:
            return _loads(candidate)
        except (ValueError, RecursionError):
            continue
    return _only_value(text)


def _only_value(text: str) -> Any:
    start = _BRACKET.search(text)
    if start is not None:
        try:
            value, end = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            pass
        else:
            if _BRACKET.search(text, end) is None:
                return value
    shown = text if len(text) <= 80 else text[:77] + "..."
    raise ValueError(f"no complete JSON in the reply: {shown!r}")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _loads(text: str) -> Any:
    return _DECODER.decode(text.strip())
