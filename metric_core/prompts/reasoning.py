"""Split the reasoning of models from their replies; unfinished reasoning is never read as an answer."""

import re

_MARKS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("[THINK]", "[/THINK]"),
    ("<|channel>thought", "<channel|>"),
)
_OPENING = re.compile("|".join(re.escape(opening) for opening, _ in _MARKS))
_CLOSING = re.compile("|".join(re.escape(closing) for _, closing in _MARKS))


def split_thought(text: str) -> tuple[str | None, str]:
    """Return the reasoning of a reply (None if there is none) and the rest of the reply.

    The opening mark may be missing, because many chat templates write it into the prompt. A reply that begins with `{`
    is JSON, and marks in it are part of its strings.

    Raises:
        ValueError: If the reasoning is unfinished, so that the reply contains no answer.

    >>> split_thought("<think>It says so.</think> yes")
    ('It says so.', 'yes')
    >>> split_thought("yes")
    (None, 'yes')
    >>> split_thought("<think>It says yes, but")
    Traceback (most recent call last):
        ...
    ValueError: unfinished reasoning: '<think>It says yes, but'
    """
    thoughts: list[str] = []
    rest = text
    while not rest.lstrip().startswith("{"):
        end = _CLOSING.search(rest)
        if end is None:
            if _OPENING.search(rest):
                raise ValueError(f"unfinished reasoning: {rest.strip()[:80]!r}")
            break
        thoughts.append(_OPENING.sub("", rest[: end.start()]).strip())
        rest = rest[end.end() :].lstrip()
    return "\n".join(filter(None, thoughts)) or None, rest
