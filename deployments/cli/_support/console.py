"""Where the command line prints: results on stdout, progress and messages on stderr, no colour when piped."""

import os
import sys
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

WIDE = 160
"""Columns of a line that no terminal will show: piped tables are for other programs, and need not fit 80."""

NARROW_CELL = 16
"""Columns that a cell whose text may be folded keeps at least."""

_GAP = 2
"""Columns between two cells."""

_piped = not sys.stdout.isatty() and not os.environ.get("COLUMNS")


class Output(Console):
    """A console whose JSON holds only characters that the stream can take."""

    def print_json(self, json: str | None = None, **options: Any) -> None:
        """Prints JSON, with escapes where the stream is not in UTF-8."""
        super().print_json(json, **{"ensure_ascii": not self.encoding.startswith("utf"), **options})


stdout = Output(highlight=False, width=WIDE if _piped else None)
stderr = Console(stderr=True, highlight=False)


def spare_encoding_errors() -> None:
    """Characters that a stream's encoding lacks are written as escapes: a finished run must not fail at its arrows."""
    for stream in (sys.stdout, sys.stderr):
        if (reconfigure := getattr(stream, "reconfigure", None)) is not None:
            reconfigure(errors="backslashreplace")


def print_table(console: Console, table: Table) -> None:
    """Prints a table, or a paragraph a row where the terminal is too narrow for its columns.

    Args:
        console: where.
        table: of texts, with a heading a column, its rows named by the first.
    """
    if _least_width(table) <= console.width:
        console.print(table)
        return
    for cells in zip(*(list(column.cells) for column in table.columns), strict=True):
        name, *others = (_text(cell) for cell in cells)
        console.print(name.copy(), style="bold")
        told = [_unwrap(column, text) for column, text in zip(table.columns[1:], others, strict=True) if text.plain]
        if told:
            console.print(Padding.indent(Text(", ").join(told), 2))


def _least_width(table: Table) -> int:
    widths = [_width(column) for column in table.columns]
    return sum(widths) + _GAP * (len(widths) - 1)


def _width(column: Column) -> int:
    natural = max(cell_len(_text(cell).plain) for cell in (column.header, *column.cells))
    return natural if column.no_wrap else min(natural, NARROW_CELL)


def _unwrap(column: Column, text: Text) -> Text:
    heading = _text(column.header).plain
    return Text(f"{heading} " if heading else "") + text


def _text(cell: Any) -> Text:
    return cell if isinstance(cell, Text) else Text.from_markup(str(cell))
