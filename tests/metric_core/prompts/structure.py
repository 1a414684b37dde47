"""A strict reader of rendered prompts: it knows nothing of the code that renders them."""

import re
import unicodedata

_OPENING = re.compile(r"<quoted ([a-z][a-z0-9_]*)>")
_CLOSING = "</quoted>"
_ANY = re.compile(r"</?quoted(?![\w-])")


def split(user: str) -> tuple[list[tuple[str, str]], list[str]]:
    """The (label, text) blocks of a user message and the lines outside of them.

    Raises:
        ValueError: a fence inside a block, a fence that does not open or close, or one that shares its line.
    """
    blocks: list[tuple[str, str]] = []
    outside: list[str] = []
    label: str | None = None
    inside: list[str] = []
    for line in user.split("\n"):
        opening = _OPENING.fullmatch(line)
        if label is None and opening:
            label, inside = opening[1], []
        elif label is not None and line == _CLOSING:
            blocks.append((label, "\n".join(inside)))
            label = None
        elif _ANY.search(line):
            raise ValueError(f"a fence where none belongs: {line[:80]!r}")
        elif label is None:
            outside.append(line)
        else:
            inside.append(line)
    if label is not None:
        raise ValueError(f"the block {label!r} does not end")
    return blocks, outside


def holds_fence(text: str) -> bool:
    """Whether there is a fence or a part of one in a text."""
    return _ANY.search(text) is not None


def plain(text: str) -> str:
    """A text as a lenient tokenizer might see it: compatibility forms resolved, invisible characters gone."""
    composed = unicodedata.normalize("NFKC", text)
    return "".join(character for character in composed if unicodedata.category(character) not in ("Cf", "Mn", "Me"))
