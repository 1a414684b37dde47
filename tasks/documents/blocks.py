"""Blocks that make up a finding; terminal, Markdown and pages lay them out.

A `str` is text that users, data or models may have written: no medium takes it as markup. Words of this project are
`Span`s, made by `own`.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class Tone(StrEnum):
    """Meaning of a piece of text that a reader should see at once."""

    PLAIN = "plain"
    GOOD = "good"
    BAD = "bad"
    OTHER = "other"
    UNSURE = "unsure"
    MUTED = "muted"


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of text.

    Args:
        is_own: True for words of this project, with at most one command of the user in backticks.
        brief: Shorter words for a narrow terminal.
        link: Name of the element on the same page that the text links to.
    """

    text: str
    tone: Tone = Tone.PLAIN
    is_own: bool = False
    brief: str = ""
    link: str = ""


Text: TypeAlias = str | Span | tuple[str | Span, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A paragraph."""

    text: Text
    is_strong: bool = False


@dataclass(frozen=True, slots=True)
class Items:
    """Independent sentences."""

    texts: tuple[Text, ...]
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Args:
        is_number: True for numbers and intervals, which are never folded.
        is_extra: True if a narrow terminal leaves it out.
    """

    heading: str
    is_number: bool = False
    is_extra: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table, whose first column names the rows."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Text, ...], ...]


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks with a title.

    Args:
        is_folded: True if readers open it themselves where they can.
        is_long: True if a terminal shows the title only.
    """

    title: Text
    blocks: "tuple[Block, ...]"
    is_folded: bool = False
    is_long: bool = False


@dataclass(frozen=True, slots=True)
class Caution:
    """A warning that readers must see before anything else."""

    title: str
    sentence: str
    reasons: tuple[str, ...]


Block: TypeAlias = Line | Items | Table | Section | Caution


def own(text: str, tone: Tone = Tone.PLAIN, brief: str = "") -> Span:
    """Return words of this project."""
    return Span(text, tone, is_own=True, brief=brief)


def parts_of(text: Text) -> tuple[Span, ...]:
    """Return the pieces of a text.

    >>> [part.text for part in parts_of(("faithfulness", own(": better")))]
    ['faithfulness', ': better']
    """
    parts = text if isinstance(text, tuple) else (text,)
    return tuple(Span(part) if isinstance(part, str) else part for part in parts)


def make_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[Text]],
    numbers: Collection[str] | None = None,
    extra: Collection[str] = (),
) -> Table:
    """Return a table.

    Args:
        numbers: Headings of the columns with numbers; None for all but the first.
        extra: Headings of the columns that a narrow terminal leaves out.
    """
    chosen = headings[1:] if numbers is None else numbers
    columns = (Column(heading, heading in chosen, heading in extra) for heading in headings)
    return Table(tuple(columns), tuple(tuple(row) for row in rows))
