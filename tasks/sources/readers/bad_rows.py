"""Collect rows that are not valid samples, with their places and problems, and build the message about them."""

from collections.abc import Iterable
from dataclasses import dataclass

MOST_DETAILS = 1000
"""Maximum number of bad rows that are stored with details; the others are only counted."""
_SHOWN = 10

SKIP_HINT = "--on-bad-row skip leaves the bad rows out"
UTF8_HINT = "save the file as UTF-8"
EMPTY_TEXT_HINT = "--empty-text missing scores the other metrics of rows that lack a value"
MISSING_TEXTS_HINT = '--missing-texts "" reads them as texts'
PASSAGE_HINT = (
    "--passage-separator none reads a text as one passage, and --passage-separator '|' one with bars as several "
    '(passage_separator = "|")'
)
DUPLICATE_HINT = '--id-column NAME reads the ids from another column; --id-column "" derives them from the content'


class InvalidRowError(Exception):
    """A value or a row that cannot be (part of) a sample.

    Args:
        problem: Description of what was got and what was wanted.
        column: Name of the invalid column; None for the row as a whole, or if it is not known yet.
        hint: Option that would accept the value.
    """

    def __init__(self, problem: str, column: str | None = None, hint: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.column = column
        self.hint = hint


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that is not a valid sample.

    Args:
        number: Number of the row, from 1: the line of a JSON Lines file, or the record or row of any other source.
            Numbers continue over several files.
        column: Invalid sample column (or the source's id column); None for the row as a whole.
        problem: Description of what was got and what was wanted.
        unit: Unit of the number: "row" or "line".
        detail: Additional place: "line 9", "part-1.jsonl, line 9".
    """

    number: int
    column: str | None
    problem: str
    unit: str = "row"
    detail: str = ""

    @property
    def place(self) -> str:
        """The place of the row in words: "line 7", "row 3 (line 9)"."""
        return f"{self.unit} {self.number}" + (f" ({self.detail})" if self.detail else "")

    def __str__(self) -> str:
        where = self.place if self.column is None else f"{self.place}, {self.column}"
        return f"{where}: {self.problem}"


class BadRowLog:
    """The bad rows found so far: all are counted, the first ones have details."""

    def __init__(self) -> None:
        self.rows: list[BadRow] = []
        self.count = 0
        self._hints: dict[str, None] = {}

    def add(self, row: BadRow, hint: str | None = None) -> None:
        """Record a bad row and the option that would accept it."""
        self.count += 1
        if len(self.rows) < MOST_DETAILS:
            self.rows.append(row)
        if hint is not None:
            self._hints[hint] = None

    def message(self, source_name: str, rows_read: int, hints: Iterable[str] = ()) -> str:
        """Return a message with the share of bad rows, the first of them, and options that help."""
        share = "the only row" if rows_read == 1 else f"{self.count} of {rows_read} rows"
        lines = [f"{share} of {source_name} cannot be evaluated:", *(f"  {row}" for row in self.rows[:_SHOWN])]
        if self.count > _SHOWN:
            lines.append(f"  and {self.count - _SHOWN} more")
        options = [*self._hints, *hints]
        if options:
            lines.append("Correct the data, or: " + "; ".join(options) + ".")
        return "\n".join(lines)
