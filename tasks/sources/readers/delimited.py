"""Read CSV and TSV files record by record. Row numbers count records; the lines are details."""

import csv
import re
from collections.abc import Generator, Iterable, Iterator
from typing import BinaryIO

from metric_core.errors import SourceError
from tasks.runtime.wording import quote_names
from tasks.sources.readers import read_limits
from tasks.sources.readers.bad_rows import UTF8_HINT
from tasks.sources.readers.protocol import RawRow, RowSource, Unreadable
from tasks.sources.readers.read_limits import bounded_lines, row_problem
from tasks.sources.readers.source_files import DataFile, refuse_other_content, refuse_utf16

_LONGEST_CELL = 2**31 - 1


_SEPARATOR = re.compile(r"sep=([,;|\t])\s*")
"""First line by which a file tells Excel its delimiter."""


class DelimitedSource(RowSource):
    """A CSV or TSV file. A .csv file may use commas, semicolons (as many localized spreadsheets), tabs or bars."""

    text_cells = True
    has_schema = True

    def __init__(self, file: DataFile) -> None:
        super().__init__(file.name)
        self._file = file
        self._tabs = file.extension == ".tsv"

    def column_sets(self, limit: int | None) -> Generator[Iterable[str], None, None]:  # noqa: ARG002 - has a header
        """Yield the names in the header."""
        with self._file.open() as handle:
            lines = _Lines(handle, self.name)
            header = self._header(lines)
        if header:
            yield header

    def rows(self, batch_rows: int) -> Generator[RawRow, None, None]:  # noqa: ARG002 - records come one by one
        """Yield the records after the header, without blank lines."""
        # The csv module has one limit for the whole process; the contexts of a row easily exceed its default.
        csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
        with self._file.open() as handle:
            lines = _Lines(handle, self.name)
            header = self._header(lines)
            for number, (first, last, cells) in enumerate(self._records(lines), start=1):
                place = f"line {first}" if first == last else f"lines {first} to {last}"
                yield RawRow(number, _row(header, cells), place)

    def _header(self, lines: "_Lines") -> list[str]:
        stated = None
        for line in lines:
            if lines.number == 1 and (stated := _SEPARATOR.fullmatch(line)):
                continue
            if line.strip():
                lines.refuse_invalid()
                lines.delimiter = stated[1] if stated else "\t" if self._tabs else _delimiter(line)
                return self._names(line, lines)
        return []

    def _names(self, line: str, lines: "_Lines") -> list[str]:
        if "\r" in line.rstrip("\r\n"):
            raise SourceError(
                f"{self.name} cannot be read: its lines end with a carriage return alone; save it with Windows or Unix "
                "line endings"
            )
        try:
            names = [name.strip() for name in next(csv.reader([line], delimiter=lines.delimiter))]
        except csv.Error as error:
            raise SourceError(f"{self.name} cannot be read: its header is not valid CSV: {error}") from error
        duplicates = {name for name in names if name and names.count(name) > 1}
        if duplicates:
            raise SourceError(f"{self.name} has two columns named {quote_names(sorted(duplicates))}; rename one")
        return names

    def _records(self, lines: "_Lines") -> Iterator[tuple[int, int, list[str] | Unreadable]]:
        reader = csv.reader(lines, delimiter=lines.delimiter, strict=True)
        while True:
            first = lines.number + 1
            lines.problem = None
            lines.record_bytes = 0
            cells: list[str] | Unreadable
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                if lines.ended:
                    raise SourceError(
                        f"{self.name} cannot be read from line {first} on: a quoted cell that begins there never ends"
                    ) from error
                cells = Unreadable(f"invalid CSV: {error}")
            if cells:
                yield first, lines.number, Unreadable(lines.problem, UTF8_HINT) if lines.problem else cells


class _Lines:
    """The lines of a file as text; `problem` describes a line that is not UTF-8."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._lines = bounded_lines(file)
        self._name = name
        self.record_bytes = 0
        self.delimiter = ","
        self.number = 0
        self.problem: str | None = None
        self.ended = False

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        line = next(self._lines, b"")
        if line == b"":
            self.ended = True
            raise StopIteration
        self.record_bytes += read_limits.MAX_ROW_BYTES + 1 if line is None else len(line)
        if line is None or self.record_bytes > read_limits.MAX_ROW_BYTES:
            # After a part of a record, quotes no longer show where the next one begins.
            raise SourceError(
                f"{self._name} cannot be read from line {self.number + 1} on: {row_problem()}, or a quote never ends"
            )
        if not self.number:
            refuse_utf16(line, self._name)
            refuse_other_content(line, self._name)
        self.number += 1
        try:
            return line.decode("utf-8-sig" if self.number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            self.problem = f"invalid UTF-8 at byte {error.start + 1} of line {self.number}"
            return line.decode(errors="replace")

    def refuse_invalid(self) -> None:
        """Raise SourceError if the last line read is not UTF-8."""
        if self.problem:
            raise SourceError(f"{self._name} cannot be read: {self.problem}, which is its header; save it as UTF-8")


def _delimiter(header: str) -> str:
    if "," in header:
        return ","
    return next((candidate for candidate in (";", "\t", "|") if candidate in header), ",")


def _row(header: list[str], cells: list[str] | Unreadable) -> dict[str, str] | Unreadable:
    if isinstance(cells, Unreadable):
        return cells
    if len(cells) != len(header):
        return Unreadable(f"got {len(cells)} cell{'s' * (len(cells) > 1)}, wanted {len(header)} as in the header")
    return dict(zip(header, cells, strict=True))
