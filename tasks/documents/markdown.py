"""Lay out a document as Markdown, for a pull request or an artifact.

Text that is not ours is in code spans, where no markup, link or mention works.
"""

import re
from collections.abc import Iterable, Iterator
from html import escape

from metric_core.parsing.control_characters import escape_controls
from tasks.documents.blocks import Block, Caution, Items, Line, Section, Span, Table, Text, Tone, parts_of

_SIGNS = {Tone.GOOD: "🟢 ", Tone.BAD: "🔴 ", Tone.OTHER: "🔵 ", Tone.UNSURE: "🟡 "}
_LONGEST = 200
_BEFORE_A_BAR = re.compile(r"\\(?=\\*\|)")


def to_markdown(blocks: Iterable[Block]) -> str:
    r"""Return blocks as Markdown.

    >>> print(to_markdown([Line("a|b"), Items(("<c>",))]))
    `a\|b`
    <BLANKLINE>
    - `<c>`
    <BLANKLINE>
    """
    return "\n".join(line for block in blocks for line in (*_lines(block), ""))


def code(text: str) -> str:
    r"""Return a text as a code span that it cannot break out of, in a table or outside.

    >>> code("a|b`<img>\n@all")
    "`a\\|b'<img> @all`"

    A backslash before a bar would escape the one that escapes the bar:

    >>> print(code(r"a\|b"))
    `a\ \|b`
    """
    plain = escape_controls(" ".join(text.split())).replace("`", "'")
    plain = _BEFORE_A_BAR.sub(r"\\ ", plain).replace("|", "\\|")
    shown = plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]}…"
    return f"`{shown}`" if shown else "-"


def _lines(block: Block) -> Iterator[str]:
    match block:
        case Line():
            yield f"**{_text(block.text)}**" if block.is_strong else _text(block.text)
        case Items():
            yield from (f"- {_text(text)}" for text in block.texts)
        case Table():
            yield f"| {' | '.join(column.heading for column in block.columns)} |"
            yield f"|{'|'.join('---:' if column.is_number else '---' for column in block.columns)}|"
            for row in block.rows:
                cells = zip(block.columns, row, strict=True)
                yield f"| {' | '.join(_text(cell, is_number=column.is_number) for column, cell in cells)} |"
        case Section(is_folded=True):
            yield f"<details><summary>{escape(''.join(part.text for part in parts_of(block.title)))}</summary>"
            yield from ("", to_markdown(block.blocks), "</details>")
        case Section():
            yield from (f"**{_text(block.title)}**", "", to_markdown(block.blocks).removesuffix("\n"))
        case Caution():
            yield from ("> [!WARNING]", f"> **{block.title}.** {block.sentence}")
            yield from (f"> - {code(reason)}" for reason in block.reasons)


def _text(text: Text, is_number: bool = False) -> str:
    return "".join(_SIGNS.get(part.tone, "") + _part(part, is_number) for part in parts_of(text))


def _part(part: Span, is_number: bool) -> str:
    if not (part.is_own or is_number):
        return code(part.text)
    before, _, rest = part.text.partition("`")
    command, _, after = rest.rpartition("`")
    return f"{_words(before)}{code(command)}{_words(after)}" if command else _words(part.text)


def _words(text: str) -> str:
    return escape(text, quote=False).replace("|", "\\|")
