"""The protocol of recognizers of named entities."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Entity:
    """A named entity as written in the text, with the label that the recognizer gave it (PERSON, DATE, ...)."""

    text: str
    label: str


@dataclass(frozen=True, slots=True)
class RecognizerIdentity:
    """The identity of a recognizer: everything about it that can change its entities."""

    backend: str
    model: str
    revision: str


class EntityRecognizer(Protocol):
    """A model that finds named entities.

    A recognizer may also have `copies_text`, which is true if each of its entities is a part of the text, as written
    there. Texts that do not contain a wanted name then need not be read.
    """

    @property
    def identity(self) -> RecognizerIdentity:
        """The identity of the model."""

    def entities(self, texts: Sequence[str]) -> list[list[Entity]]:
        """Return the entities of each text, in the order of the texts, by position; repeated entities are repeated."""


def copies_text(recognizer: object) -> bool:
    """Return whether each entity that a recognizer finds is a part of the text; false if it does not say.

    >>> copies_text(object())
    False
    """
    return bool(getattr(recognizer, "copies_text", False))
