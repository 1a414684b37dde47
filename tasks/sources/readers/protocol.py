"""Define the interface of readers: the columns and the rows of a source, in order, unchecked."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from tasks.options.source_options import SourceOptions


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A placeholder for a row that cannot be read.

    Args:
        problem: Description of what was got and what was wanted.
        hint: Advice on how to make the row readable.
    """

    problem: str
    hint: str | None = None


class RawRow(NamedTuple):
    """A row as it is in the source.

    Args:
        number: Number of the row, from 1, in the unit of the source.
        content: Mapping from column to value, with the types of Python's json module, or the reason why there is none.
        detail: Additional place of the row, for messages.
    """

    number: int
    content: Mapping[str, Any] | Unreadable
    detail: str = ""


class RowSource(ABC):
    """A source that exists but has not been read.

    Args:
        name: Name of the source in messages.
    """

    unit = "row"
    """Unit of row numbers: "row" or "line"."""
    text_cells = False
    """Whether all values are texts, with lists and mappings written as text."""
    has_schema = False
    """Whether the columns are known before the rows."""
    fills_keys = False
    """Whether a mapping has every key of the whole table, as structs of Arrow do, with null for those of other rows."""
    skips_bad_rows = False
    """Whether bad rows are always left out and counted, because they are usual in the source."""

    def __init__(self, name: str) -> None:
        self.name = name

    def configure(self, options: SourceOptions) -> None:  # noqa: B027 only few sources need them
        """Take the options of reading."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the source as a whole."""
        return ()

    @property
    def hints(self) -> tuple[str, ...]:
        """Advice for a source in which no row has columns."""
        return ()

    def where(self, number: int) -> str:
        """Return the place of a row that has been read, for messages."""
        return f"{self.unit} {number}"

    @abstractmethod
    def rows(self, batch_rows: int) -> Generator[RawRow, None, None]:
        """Yield the rows in order, with about `batch_rows` of them in memory.

        Raises:
            SourceError: The source cannot be read to its end.
        """

    def column_sets(self, limit: int | None) -> Generator[Iterable[str], None, None]:
        """Yield sets of column names whose union is all columns: from the schema if there is one, else row by row.

        Args:
            limit: Maximum number of rows to read if there is no schema; None reads all.
        """
        with closing(self.rows(batch_rows=100)) as rows:
            for row in islice(rows, limit):
                if not isinstance(row.content, Unreadable):
                    yield row.content
