"""Read from a chunk what a receipt keeps of it: digests of its text, and marks of what looks damaged."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import IntFlag
from functools import lru_cache
from hashlib import blake2b
from typing import Any
from zlib import crc32

EDGE = 24
"""Bytes at the beginning and at the end of a text by which two chunks are known to begin or end alike."""

_DATES = ("date", "updated_at", "last_modified", "modified", "updated", "version_date", "published", "created_at")
_PERMISSIONS = ("acl", "acls", "permissions", "allowed_groups", "groups", "group", "access", "roles", "readers")
_EMBEDDERS = ("embedding_model", "embedder", "embed_model", "embedding_model_name")
_VECTORS = ("embedding", "embeddings", "vector", "values", "dense_vector")
_ENDS = frozenset(".!?:;…\u3002\uff01\uff1f\"'»”\u2019)]}>*`|-=")
"""Signs at the end of a text that does not end in the middle of a sentence."""
_GARBLED = re.compile("[\ufffd\x00-\x08\x0b\x0e-\x1f]|[ÃÂâ][\u0080-\u00bf\u20ac\u2122\u0153\u201a-\u203a]")
"""Characters that no text has: the replacement character, control characters, and UTF-8 that was read as Latin-1."""
_MARKUP = re.compile(r"</?[A-Za-z][^<>]{0,200}>|&(?:[A-Za-z]{2,8}|#[0-9]{2,5});")
_LEAST_MARKUP = 3
_MARKS = b"!?;:,|()[]{}<>/"
_PUNCTUATION = bytes.maketrans(_MARKS, b"." * len(_MARKS))
_SURE = 20
"""Bytes that begin a text and stand in the one before hardly by chance."""
_OF_CHUNK = re.compile(
    r"(?i)(.*[._])?(id_?|text|content|page_content|pagecontent|body|start.*|end.*|.*index|.*idx|.*chunk.*|.*offset.*|.*token.*"
    r"|page|score|.*hash|digest|length|size|position|seq\w*)"
)
"""Columns that say something of a chunk and not of its document: other cuts have other ones."""


class Mark(IntFlag):
    """A sign of damage, or of a cut, in a chunk."""

    EMPTY = 1
    MID_SENTENCE = 2
    GARBLED = 4
    MARKUP = 8
    REPEATED = 16


_EMPTY, _MID_SENTENCE, _GARBLED_MARK, _MARKUP_MARK = (int(mark) for mark in (*Mark,)[:4])


@dataclass(frozen=True, slots=True)
class ChunkMarks:
    """The part of a receipt that a text becomes.

    Args:
        encoded: The text without blanks and line breaks, which other cuts and other wrapping leave alone, in UTF-8.
        digest: Digest of that.
        head: Checksum of its beginning; 0 for a shorter text.
        tail: Checksum of its end.
    """

    encoded: bytes
    digest: int
    head: int
    tail: int
    marks: int


def digest(content: bytes) -> int:
    """Return a digest of 8 bytes."""
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little")


def text_digest(text: str) -> int:
    """Return the digest of a text, which blanks and line breaks do not change.

    >>> text_digest("It rains.") == text_digest("It  rains. ")
    True
    """
    return digest("".join(text.split()).encode("utf-8", "surrogatepass"))


def mark_text(text: str) -> ChunkMarks:
    """Return what a receipt keeps of the text of a chunk.

    >>> [Mark(mark_text(text).marks).name for text in ("It rains", "FranÃ§ois says.", " ")]
    ['MID_SENTENCE', 'GARBLED', 'EMPTY']
    """
    squeezed = "".join(text.split())
    encoded = squeezed.encode("utf-8", "surrogatepass")
    marks = 0
    if not squeezed:
        marks = _EMPTY
    elif squeezed[-1] not in _ENDS:
        marks = _MID_SENTENCE
    if not (squeezed.isascii() and squeezed.isprintable()) and _GARBLED.search(text) is not None:
        marks |= _GARBLED_MARK
    if ("<" in text or "&" in text) and _counts_as_markup(text):
        marks |= _MARKUP_MARK
    has_edges = len(encoded) >= EDGE
    head, tail = (crc32(encoded[:EDGE]), crc32(encoded[-EDGE:])) if has_edges else (0, 0)
    return ChunkMarks(encoded, digest(encoded), head, tail, marks)


def _counts_as_markup(text: str) -> bool:
    return sum(1 for _ in zip(_MARKUP.finditer(text), range(_LEAST_MARKUP), strict=False)) == _LEAST_MARKUP


def without_rules(encoded: bytes) -> bytes:
    """Return a squeezed text without the signs of rules and frames, which nobody can join again where they were cut.

    >>> without_rules(b"Prices-----|none")
    b'Prices|none'
    """
    return encoded.translate(None, b"-=^~").replace("─".encode(), b"")


def split_pieces(encoded: bytes) -> list[bytes]:
    """Return the pieces of a squeezed text between punctuation marks: the first and the last may be parts of pieces.

    >>> split_pieces(b"ittakes3days.Ask,ifyou")
    [b'ittakes3days', b'Ask', b'ifyou']
    """
    return encoded.translate(_PUNCTUATION).split(b".")


def count_overlap(before: bytes, encoded: bytes) -> int:
    """Return how many bytes at the beginning of a squeezed text repeat the end of the one before it.

    >>> count_overlap(b"thequickbrownfoxjumpsoverit", b"quickbrownfoxjumpsoveritall"), count_overlap(b"abc", b"cd")
    (24, 0)
    """
    start = encoded[:_SURE]
    place = before.find(start) if len(start) == _SURE else -1
    while place >= 0:
        if encoded.startswith(before[place:]):
            return len(before) - place
        place = before.find(start, place + 1)
    return 0


def count_short_overlap(before: bytes, encoded: bytes) -> int:
    """Return how many bytes at the beginning of a text are the end of the one before it, perhaps by chance.

    >>> count_short_overlap(b"Description", b"ion")
    3
    """
    last, size = before[-1:], _SURE + 1
    while last and (size := encoded.rfind(last, 0, size - 1) + 1):
        if before.endswith(encoded[:size]):
            return size
    return 0


def is_of_chunk(column: str) -> bool:
    """Return whether a column says something of a chunk and not of its document.

    >>> [name for name in ("title", "chunk_index", "acl", "start", "_id", "updated_at") if not is_of_chunk(name)]
    ['title', 'acl', 'updated_at']
    """
    return _OF_CHUNK.fullmatch(column) is not None


@dataclass(frozen=True, slots=True)
class Roles:
    """The columns of a chunk that say more than its text.

    Args:
        days: Columns with a date.
        embedders: Columns with the name of the model of its vector.
    """

    days: tuple[str, ...]
    permissions: tuple[str, ...]
    embedders: tuple[str, ...]
    vectors: tuple[str, ...]

    def read_day(self, fields: Mapping[str, Any]) -> float:
        """Return the date of a chunk as a number of days; 0 without one.

        >>> [find_roles(tuple(each)).read_day(each) for each in ({"updated_at": "1970-01-02T12:00Z"}, {"date": 86400})]
        [1.5, 1.0]
        """
        value = next((fields[name] for name in self.days if fields[name]), None)
        if isinstance(value, date):
            value = value.isoformat()
        if isinstance(value, str):
            return _parse_day(value)
        return value / 86400 if isinstance(value, int | float) and not isinstance(value, bool) else 0.0

    def read_permissions(self, fields: Mapping[str, Any]) -> tuple[str, ...]:
        """Return who may see a chunk; none if it does not say.

        >>> [find_roles(tuple(each)).read_permissions(each) for each in ({"acl": ["hr", 7]}, {"group": "hr, it"}, {})]
        [('hr', '7'), ('hr', 'it'), ()]
        """
        for value in (fields[name] for name in self.permissions):
            if value:
                found = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
                return tuple(str(each).strip() for each in found)
        return ()

    def read_embedder(self, fields: Mapping[str, Any]) -> Iterator[str]:
        """Yield which model embedded a chunk, and how many numbers its vector has, as far as the chunk says so."""
        yield from (str(fields[name]) for name in self.embedders if fields[name])
        yield from (f"{len(fields[name])} dimensions" for name in self.vectors if isinstance(fields[name], list))


@lru_cache(maxsize=1000)
def find_roles(columns: tuple[str, ...]) -> Roles:
    """Return the columns of a chunk that say more than its text."""
    every = (_DATES, _PERMISSIONS, _EMBEDDERS, _VECTORS)
    return Roles(*(tuple(name for name in names if name in columns) for names in every))


@lru_cache(maxsize=10_000)
def _parse_day(text: str) -> float:
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        return 0.0
    return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp() / 86400
