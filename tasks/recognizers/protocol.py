"""What every recogniser of named entities is: texts in, entities out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Entity:
    """A named entity as written in the text, with the recogniser's label for it (PERSON, DATE, ...)."""

    text: str
    label: str


@dataclass(frozen=True, slots=True)
class RecognizerIdentity:
    """Everything about a recogniser that can change its entities."""

    backend: str
    model: str
    revision: str


class EntityRecognizer(Protocol):
    """Finds named entities."""

    @property
    def identity(self) -> RecognizerIdentity:
        """Which model."""

    def entities(self, texts: Sequence[str]) -> list[list[Entity]]:
        """The entities of each text, in the order of the texts and of their appearance; repeated ones repeated."""
