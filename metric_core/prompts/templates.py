r"""Fill templates: lines that are replaced by texts, and marks within a line that are replaced by values.

A line `{response as text}` shows a text under another label, so that prompts of different kinds can begin alike.

A template is filled in one pass over its wording, so nothing in a text or in the user's instructions is ever read as
a mark.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from metric_core.errors import ConfigError
from metric_core.prompts.fences import FENCE_WORD, contains_fence, fence

ALL_TEXTS = "texts"
"""Placeholder of all texts that have no separate placeholder."""

_MARK = re.compile(r"\{([a-z_]+)(?: as ([a-z][a-z0-9_]*))?\}")


@dataclass(frozen=True, slots=True)
class Places:
    """The placeholders of a template; each occurs once.

    Args:
        texts: Placeholders of texts, each on a separate line.
        values: Placeholders of values, within a line.
        optional: Texts that a question may lack.
    """

    texts: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


class PromptPiece(NamedTuple):
    """A part of a filled template: the fenced text with this label, or lines of wording if the label is None."""

    label: str | None
    text: str


def check_template(wording: str, places: Places, origin: str) -> str:
    """Check the placeholders of a template file, and return its wording.

    Raises:
        ConfigError: If a placeholder is missing, repeated, unknown or not on a separate line, two texts or something
            else than a text would be shown under one label, or the wording contains a fence.

    >>> check_template("Is it {what}?", Places(values=("color",)), "mine/verdict.txt")
    Traceback (most recent call last):
        ...
    metric_core.errors.ConfigError: mine/verdict.txt: {color} must occur once, found 0 times; allowed are {color}
    """
    if contains_fence(wording):
        raise ConfigError(f"{origin}: a template must not contain <{FENCE_WORD} ...>; fences are added around texts")
    known = (*places.texts, *places.values)
    shown = [(found[1], found[2]) for found in _MARK.finditer(wording)]
    marks = [name for name, _ in shown]
    for name in (*known, *marks):
        if marks.count(name) != (name in known):
            wanted = "must occur once" if name in known else "is unknown here"
            allowed = ", ".join(f"{{{mark}}}" for mark in known)
            raise ConfigError(f"{origin}: {{{name}}} {wanted}, found {marks.count(name)} times; allowed are {allowed}")
    alone = {found[1] for line in wording.split("\n") if (found := _MARK.fullmatch(line))}
    for name in places.texts:
        if name not in alone:
            raise ConfigError(f"{origin}: {{{name}}} must be on a separate line")
    labels = [label or name for name, label in shown]
    for name, label in shown:
        if label and (name not in places.texts or name == ALL_TEXTS):
            raise ConfigError(f"{origin}: {{{name} as {label}}}: only a single text can be shown under another label")
        if label and labels.count(label) > 1:
            raise ConfigError(f"{origin}: two texts would be shown as {label!r}; give each a different label")
    return wording


def custom_places(wording: str, origin: str) -> Places:
    r"""Return the placeholders of a template that a plugin brings: `{answer}`, perhaps `{instructions}`, and texts.

    Raises:
        ConfigError: If `{answer}` is missing, a placeholder is repeated, or one of a text is not on a separate line.

    >>> custom_places("{response}\nPolite? {answer}", "mine").values
    ('answer',)
    """
    marks = tuple(dict.fromkeys(found[1] for found in _MARK.finditer(wording)))
    values = ("answer", *(mark for mark in marks if mark == "instructions"))
    places = Places(tuple(mark for mark in marks if mark not in values), values)
    check_template(wording, places, origin)
    return places


def fill_template(wording: str, texts: Mapping[str, str], values: Mapping[str, str]) -> list[PromptPiece]:
    r"""Return the parts of a template, with placeholders replaced by fenced untrusted texts and by trusted values.

    >>> pieces = fill_template("{context}\nIs {what} so?\n{claim}", {"context": "{what}"}, {"what": "{claim}"})
    >>> [piece.text for piece in pieces]
    ['<quoted context>\n{what}\n</quoted>', 'Is {claim} so?']
    """
    return [
        PromptPiece(None, part) if label is None else PromptPiece(label, fence(label, texts[part]))
        for label, part in _lay_out(wording, tuple(texts), tuple(values.items()))
    ]


@lru_cache(maxsize=256)  # questions differ in their texts; there are few templates, names and values
def _lay_out(wording: str, names: tuple[str, ...], values: tuple[tuple[str, str], ...]) -> list[tuple[str | None, str]]:
    """Return the parts of a template: the label and the name of a text, or None and lines with their values."""
    value_of = dict(values)
    marks = {found[1] for found in _MARK.finditer(wording)}
    parts: list[tuple[str | None, str]] = []
    for line in wording.split("\n"):
        mark = _MARK.fullmatch(line)
        if mark is None or mark[1] in value_of:
            filled = _MARK.sub(lambda found: value_of[found[1]], line)
            if parts and parts[-1][0] is None:
                filled = f"{parts.pop()[1]}\n{filled}"
            parts.append((None, filled))
            continue
        shown = [name for name in names if name not in marks] if mark[1] == ALL_TEXTS else [mark[1]]
        parts += [(mark[2] or name, name) for name in shown if name in names]
    return parts
