"""Parse JSON from replies of judges: one complete value or none. Damaged replies are never repaired."""

import json
import re
from typing import Any, NoReturn

_FENCE = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)
_BRACKET = re.compile(r"[{\[]")
_BRACE = re.compile(r"{")


def parse_json_reply(text: str) -> Any:
    """Return the JSON value of a reply: the whole reply, or the only object or array in a code fence or in prose.

    Truncated replies are rejected even if a part of them is complete, and so are replies with two values or with
    repeated member names, because their meaning would be a guess.

    Raises:
        ValueError: The text has no complete JSON value, or more than one.

    >>> parse_json_reply('Here you go: {"score": 4} I hope it helps.')
    {'score': 4}
    >>> parse_json_reply('{"claims": [{"text": "It rains."}, {"text": "It')
    Traceback (most recent call last):
        ...
    ValueError: no complete JSON in the reply: '{"claims": [{"text": "It rains."}, {"text": "It'

    A line break within a text is taken as it is:

    >>> parse_json_reply('{"question": "Why' + chr(10) + 'now?"}')["question"].split()
    ['Why', 'now?']
    """
    fenced = list(_FENCE.finditer(text))
    for candidate in (text, *(_fence_content(text, fence) for fence in fenced if len(fenced) == 1)):
        try:
            return _loads(candidate)
        except (ValueError, RecursionError):
            continue
    return _only_value(text)


def _fence_content(text: str, fence: re.Match[str]) -> str:
    """Return the content of a code fence; empty if the text around it also contains an object."""
    return "" if _first_value(text[: fence.start()] + text[fence.end() :], _BRACE) else fence[1]


def _only_value(text: str) -> Any:
    value = _first_value(text, _BRACKET)
    if value is not None and _BRACKET.search(text, value[1]) is None:
        return value[0]
    shown = text if len(text) <= 80 else text[:77] + "..."
    raise ValueError(f"no complete JSON in the reply: {shown!r}")


def _first_value(text: str, opening: re.Pattern[str]) -> tuple[Any, int] | None:
    """Return the value that begins at the first bracket, and its end position."""
    start = opening.search(text)
    try:
        return None if start is None else _DECODER.raw_decode(text, start.start())
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _refuse_repeated(members: list[tuple[str, Any]]) -> dict[str, Any]:
    members_by_name = dict(members)
    if len(members_by_name) < len(members):
        raise ValueError("an object has two members with the same name")
    return members_by_name


# Grammars of some servers allow line breaks within texts, which have one meaning.
_DECODER = json.JSONDecoder(strict=False, parse_constant=_refuse, object_pairs_hook=_refuse_repeated)


def _loads(text: str) -> Any:
    return _DECODER.decode(text.strip())
