"""Rows that are no samples: where they are, what is wrong with them, and the message that a user gets about them."""

from collections.abc import Iterable
from dataclasses import dataclass

MOST_DETAILS = 1000
"""Bad rows that are kept with their details; the others are only counted."""
_SHOWN = 10

SKIP_HINT = "--on-bad-row skip leaves the bad rows out"
UTF8_HINT = "save the file as UTF-8"
EMPTY_TEXT_HINT = "--empty-text keep takes rows with empty texts as they are"
DUPLICATE_HINT = '--id-column NAME takes another column with ids; --id-column "" makes ids from the content of the rows'


class UnfitError(Exception):
    """A value or a row that can not be (part of) a sample.

    Args:
        problem: what was got and what was wanted.
        column: the column it is about; None: the row as a whole, or not known yet.
        hint: an option that would accept it.
    """

    def __init__(self, problem: str, column: str | None = None, hint: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.column = column
        self.hint = hint


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that is no sample.

    Args:
        number: counts from 1: the line of a JSON-lines file, the record or row of any other source, which go on over
            several files.
        column: the sample column (or the source's id column) that is wrong; None: the row as a whole.
        problem: what was got and what was wanted.
        unit: what the number counts: "row" or "line".
        detail: more about its place: "line 9", "part-1.jsonl, line 9".
    """

    number: int
    column: str | None
    problem: str
    unit: str = "row"
    detail: str = ""

    @property
    def place(self) -> str:
        """Where it is, in words: "line 7", "row 3 (line 9)"."""
        return f"{self.unit} {self.number}" + (f" ({self.detail})" if self.detail else "")

    def __str__(self) -> str:
        where = self.place if self.column is None else f"{self.place}, {self.column}"
        return f"{where}: {self.problem}"


class BadRowLog:
    """The bad rows met so far: all counted, the first ones with details."""

    def __init__(self) -> None:
        self.rows: list[BadRow] = []
        self.count = 0
        self._hints: dict[str, None] = {}

    def add(self, row: BadRow, hint: str | None = None) -> None:
        """Takes note of a bad row and of the option that would accept it."""
        self.count += 1
        if len(self.rows) < MOST_DETAILS:
            self.rows.append(row)
        if hint is not None:
            self._hints[hint] = None

    def message(self, source_name: str, rows_read: int, hints: Iterable[str] = ()) -> str:
        """How many of how many rows are bad, the first of them, and the ways out."""
        of = "the only row" if rows_read == 1 else f"{self.count} of {rows_read} rows"
        lines = [f"{of} of {source_name} can not be evaluated:", *(f"  {row}" for row in self.rows[:_SHOWN])]
        if self.count > _SHOWN:
            lines.append(f"  and {self.count - _SHOWN} more")
        ways = [*self._hints, *hints]
        if ways:
            lines.append("Correct the data, or: " + "; ".join(ways) + ".")
        return "\n".join(lines)
