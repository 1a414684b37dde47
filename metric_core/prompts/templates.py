r"""A template file as it is filled in: lines of wording, lines that are a text's place, and marks within the wording.

Filling in is one pass over the template's own words, so nothing in a text or in the user's instructions is ever
taken for a mark.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from metric_core.errors import ConfigError
from metric_core.prompts.fences import FENCE_WORD, contains_fence, fence

ALL_TEXTS = "texts"
"""The place of every text that has no place of its own."""

_MARK = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class Places:
    """What a template holds, each once.

    Args:
        texts: the places of texts, each on a line of its own.
        values: the marks within the wording.
        optional: those places of texts that may stay empty.
    """

    texts: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a filled-in template: the block of the text with this label, or wording if the label is None."""

    label: str | None
    text: str


def check_template(wording: str, places: Places, origin: str) -> str:
    """The wording of a template file, if it holds exactly the places that it must.

    Raises:
        ConfigError: a place that is missing, repeated, unknown or not on a line of its own, or words like a fence.

    >>> check_template("Is it {what}?", Places(values=("colour",)), "mine/verdict.txt")
    Traceback (most recent call last):
        ...
    metric_core.errors.ConfigError: mine/verdict.txt: {colour} must occur once, found 0 times; it may hold {colour}
    """
    if contains_fence(wording):
        raise ConfigError(
            f"{origin}: a template must not hold <{FENCE_WORD} ...>; texts get their fences when filled in"
        )
    known = (*places.texts, *places.values)
    found = _MARK.findall(wording)
    for name in (*known, *found):
        if found.count(name) != (name in known):
            wanted = "must occur once" if name in known else "means nothing here"
            allowed = ", ".join(f"{{{mark}}}" for mark in known)
            raise ConfigError(f"{origin}: {{{name}}} {wanted}, found {found.count(name)} times; it may hold {allowed}")
    for name in places.texts:
        if f"{{{name}}}" not in wording.split("\n"):
            raise ConfigError(f"{origin}: {{{name}}} must stand on a line of its own")
    return wording


def fill_template(wording: str, texts: Mapping[str, str], values: Mapping[str, str]) -> Iterator[Piece]:
    r"""The lines of a template with untrusted texts, by label, in fences, and trusted values in place of their marks.

    >>> pieces = fill_template("{context}\nIs {what} so?\n{claim}", {"context": "{what}"}, {"what": "{claim}"})
    >>> [piece.text for piece in pieces]
    ['<quoted context>\n{what}\n</quoted>', 'Is {claim} so?']
    """
    marks = _MARK.findall(wording)
    elsewhere = [label for label in texts if label not in marks]
    for line in wording.split("\n"):
        mark = _MARK.fullmatch(line)
        if mark is None or mark[1] in values:
            yield Piece(None, _MARK.sub(lambda found: values[found[1]], line))
            continue
        for label in elsewhere if mark[1] == ALL_TEXTS else [mark[1]]:
            if label in texts:
                yield Piece(label, fence(label, texts[label]))
