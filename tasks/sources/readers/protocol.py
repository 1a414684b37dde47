"""What every reader is: a source's columns and its rows, in order, as they are."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What stands in the place of a row that has no columns, and why.

    Args:
        problem: what was got and what was wanted.
        hint: what would make it readable.
    """

    problem: str
    hint: str | None = None


class RawRow(NamedTuple):
    """A row as it is in the source.

    Args:
        number: counts from 1, in the unit of the source.
        content: column -> value, in the words of Python's JSON, or why there is none.
        detail: more about its place, for messages.
    """

    number: int
    content: Mapping[str, Any] | Unreadable
    detail: str = ""


class RowSource(ABC):
    """A source that has been found, not yet read.

    Args:
        name: the source as messages name it.
    """

    unit = "row"
    """What row numbers count: "row" or "line"."""
    text_cells = False
    """Whether all values are texts, with lists and mappings written out."""
    has_schema = False
    """Whether the columns are known before the rows."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user might not expect of the source as a whole."""
        return ()

    @property
    def hints(self) -> tuple[str, ...]:
        """What may be the matter if no row has columns."""
        return ()

    def where(self, number: int) -> str:
        """The place of a row that has been read, for messages."""
        return f"{self.unit} {number}"

    @abstractmethod
    def rows(self, batch_rows: int) -> Generator[RawRow, None, None]:
        """The rows, in order, with about `batch_rows` of them in memory.

        Raises:
            SourceError: the source can not be read, or not to its end.
        """

    def column_sets(self, limit: int | None) -> Generator[Iterable[str], None, None]:
        """Sets of column names that together are all: from the schema where there is one, else row by row.

        Args:
            limit: rows that matter, where it is row by row.
        """
        with closing(self.rows(batch_rows=100)) as rows:
            for row in islice(rows, limit):
                if not isinstance(row.content, Unreadable):
                    yield row.content
