"""Splits the thinking of reasoning models off their replies: a half-finished thought is never read as a verdict."""

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
    """The thought of a reply, None if it has none, and the rest of the reply.

    A thought may lack its opening mark, as chat templates often write that themselves. A reply that begins with `{` is
    JSON, and such marks in it are part of its strings.

    Raises:
        ValueError: the thought is not finished, so whatever it holds is no answer.

    >>> split_thought("<think>It says so.</think> yes")
    ('It says so.', 'yes')
    >>> split_thought("yes")
    (None, 'yes')
    >>> split_thought("<think>It says yes, but")
    Traceback (most recent call last):
        ...
    ValueError: unfinished thought: '<think>It says yes, but'
    """
    thoughts: list[str] = []
    rest = text
    while not rest.lstrip().startswith("{"):
        end = _CLOSING.search(rest)
        if end is None:
            if _OPENING.search(rest):
                raise ValueError(f"unfinished thought: {rest.strip()[:80]!r}")
            break
        thoughts.append(_OPENING.sub("", rest[: end.start()]).strip())
        rest = rest[end.end() :].lstrip()
    return "\n".join(filter(None, thoughts)) or None, rest
