"""Define the interface of custom retrievers, and parse their replies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of an index.

    Args:
        text: Text of the passage.
        id: Id in the index, if it has one.
    """

    text: str
    id: str | None = None


PassageLike: TypeAlias = str | Passage | Mapping[str, Any]
"""A passage, its text, or `{"text": ..., "id": ...}`."""


class Retriever(Protocol):
    """An index that finds passages. Several threads call it at once."""

    @property
    def identity(self) -> str:
        """The identity of the index, for the run's records: a name, and a version if there is one."""

    def retrieve(self, query: str) -> Sequence[PassageLike]:
        """Return the passages for a query, best first. ConnectionError and TimeoutError are retried.

        Args:
            query: Query to answer.
        """


class Generator(Protocol):
    """A system that responds to a query with given passages. Several threads call it at once."""

    def generate(self, query: str, passages: Sequence[str]) -> str:
        """Return the response.

        Args:
            query: Query to respond to.
            passages: Texts of the passages to respond with.
        """


class BadReplyError(Exception):
    """A reply that is not a list of passages or not a response; the message says what it is instead."""


def parse_passages(reply: Any) -> tuple[Passage, ...]:
    """Return the passages in a reply.

    Raises:
        BadReplyError: The reply is not a list of passages.

    >>> parse_passages(["It rains.", {"text": "It snows.", "id": 7}])
    (Passage(text='It rains.', id=None), Passage(text='It snows.', id='7'))
    """
    if not isinstance(reply, Sequence) or isinstance(reply, str | bytes):
        raise BadReplyError(f"got {type(reply).__name__}, wanted a list of passages")
    return tuple(_passage(item, number) for number, item in enumerate(reply, start=1))


def parse_response(reply: Any) -> str:
    """Return the response in a reply.

    Raises:
        BadReplyError: The reply is not a text.
    """
    if not isinstance(reply, str):
        raise BadReplyError(f"got {type(reply).__name__}, wanted the response as a text")
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
