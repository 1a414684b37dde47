"""Lay out a document for a terminal: tables that fit its width, and a paragraph per row where none does."""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text as Styled

from tasks.documents.blocks import Block, Caution, Column, Items, Line, Section, Table, Text, Tone, parts_of

WIDE = 116
"""Minimum width, in columns, for the columns of a table that are extra, and for long words."""

NARROW_CELL = 16
"""Minimum width, in columns, of a cell whose text may be folded."""

_GAP = 2
"""Number of columns between two cells."""

_STYLES = {
    Tone.PLAIN: "",
    Tone.GOOD: "green",
    Tone.BAD: "red",
    Tone.OTHER: "blue",
    Tone.UNSURE: "yellow",
    Tone.MUTED: "dim",
}


def print_document(console: Console, blocks: Iterable[Block]) -> None:
    """Print blocks."""
    for block in blocks:
        match block:
            case Line():
                _print_text(console, block.text, "bold" if block.is_strong else "")
            case Items():
                for text in block.texts:
                    _print_text(console, text, _STYLES[block.tone])
            case Table():
                print_table(console, block)
            case Section(is_long=True):
                _print_text(console, (*parts_of(block.title), ": in --html, --markdown and --json"), "dim")
            case Section():
                console.print()
                _print_text(console, block.title, "bold")
                print_document(console, block.blocks)
            case Caution():
                console.print(_on_one_line(f"{block.title.upper()}: {block.sentence}"), style="bold red")
                for reason in block.reasons:
                    console.print(Styled(_on_one_line(f"  {reason}"), style="red"), soft_wrap=True)


def print_lines(console: Console, lines: Iterable[str]) -> None:
    """Print sentences, each of which begins one line whatever names of the data are in it."""
    for line in lines:
        console.print(_on_one_line(line))


def print_table(console: Console, table: Table) -> None:
    """Print a table, or a paragraph per row if the terminal is too narrow for its columns."""
    is_narrow = console.width < WIDE
    shown = [place for place, column in enumerate(table.columns) if not (is_narrow and column.is_extra)]
    columns = [table.columns[place] for place in shown]
    rows = [[_style(row[place], is_narrow) for place in shown] for row in table.rows]
    widths = [_minimum_width(column, [row[place] for row in rows]) for place, column in enumerate(columns)]
    if sum(widths) + _GAP * (len(widths) - 1) > console.width:
        _print_paragraphs(console, columns, rows)
        return
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for column, width in zip(columns, widths, strict=True):
        grid.add_column(
            Styled(column.heading),
            justify="right" if column.is_number else "left",
            no_wrap=column.is_number,
            overflow="fold",
            min_width=width,
        )
    for row in rows:
        grid.add_row(*row)
    console.print(grid)


def _print_paragraphs(console: Console, columns: Sequence[Column], rows: Sequence[Sequence[Styled]]) -> None:
    for name, *others in rows:
        name.stylize("bold")
        console.print(name)
        labels = [f"{column.heading} " if column.heading else "" for column in columns[1:]]
        parts = [Styled(label) + text for label, text in zip(labels, others, strict=True) if text.plain]
        if parts:
            console.print(Padding.indent(Styled(", ").join(parts), 2))


def _minimum_width(column: Column, cells: Sequence[Styled]) -> int:
    natural = max(cell_len(text) for text in (column.heading, *(cell.plain for cell in cells)))
    return natural if column.is_number else min(natural, NARROW_CELL)


def _print_text(console: Console, text: Text, style: str) -> None:
    """Print a text, on one line if it holds any that is not ours: a path or a name can be copied then."""
    styled = _style(text, is_narrow=False)
    styled.style = style
    console.print(styled, soft_wrap=any(not part.is_own for part in parts_of(text)))


def _style(text: Text, is_narrow: bool) -> Styled:
    """Return a text with its colors."""
    return Styled.assemble(
        *(
            (_on_one_line(part.brief if is_narrow and part.brief else part.text), _STYLES[part.tone])
            for part in parts_of(text)
        )
    )


def _on_one_line(text: str) -> str:
    """Return a text with its line breaks as escapes: one in a name of the data begins no line."""
    return text.replace("\n", "\\n")
