"""What an index of the user's own must be able to do, and what is made of its replies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of an index.

    Args:
        text: what it says.
        id: its id in the index, if it has one.
    """

    text: str
    id: str | None = None


PassageLike: TypeAlias = str | Passage | Mapping[str, Any]
"""A passage as its text, or as `{"text": ..., "id": ...}`."""


class Retriever(Protocol):
    """An index that is asked for passages, by several threads at once."""

    @property
    def identity(self) -> str:
        """What it is, for the record: a name, and a version where there is one."""

    def retrieve(self, query: str) -> Sequence[PassageLike]:
        """The passages for a query, the best first. ConnectionError and TimeoutError are tried again."""


class Generator(Protocol):
    """A system that answers with passages at hand, asked by several threads at once."""

    def generate(self, query: str, passages: Sequence[str]) -> str:
        """The answer."""


class BadReplyError(Exception):
    """A reply that is no list of passages, or no answer; the message says what was got and what was wanted."""


def passages_of(reply: Any) -> tuple[Passage, ...]:
    """The passages that a reply holds.

    Raises:
        BadReplyError: it is no list of passages.

    >>> passages_of(["It rains.", {"text": "It snows.", "id": 7}])
    (Passage(text='It rains.', id=None), Passage(text='It snows.', id='7'))
    """
    if not isinstance(reply, Sequence) or isinstance(reply, str | bytes):
        raise BadReplyError(f"got {type(reply).__name__}, wanted a list of passages")
    return tuple(_passage(item, number) for number, item in enumerate(reply, start=1))


def answer_of(reply: Any) -> str:
    """The answer that a reply is.

    Raises:
        BadReplyError: it is no text.
    """
    if not isinstance(reply, str):
        raise BadReplyError(f"got {type(reply).__name__}, wanted the answer as a text")
    return reply


def _passage(item: Any, number: int) -> Passage:
    if isinstance(item, Passage):
        return item
    if isinstance(item, Mapping):
        text, name = item.get("text"), item.get("id")
        if isinstance(text, str):
            return Passage(text, None if name is None else str(name))
    if isinstance(item, str):
        return Passage(item)
    raise BadReplyError(f"passage {number} is {type(item).__name__}, wanted a text or {{'text': ..., 'id': ...}}")
