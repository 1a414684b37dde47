"""Lay out a document as HTML, for a page or a notebook. Every text is escaped."""

from collections.abc import Iterable

from markupsafe import Markup

from tasks.documents.blocks import Block, Caution, Items, Line, Section, Span, Table, Text, Tone, parts_of


def to_html(blocks: Iterable[Block], title: str = "") -> Markup:
    """Return blocks as HTML.

    Args:
        title: Title of a table for screen readers; its headings without one.

    >>> to_html([Line("<b>")])
    Markup('<p><bdi>&lt;b&gt;</bdi></p>')
    """
    return Markup("\n").join(_block(block, title) for block in blocks)


def _block(block: Block, title: str) -> Markup:
    match block:
        case Line():
            paragraph = Markup("<p><strong>{}</strong></p>") if block.is_strong else Markup("<p>{}</p>")
            return paragraph.format(_text(block.text))
        case Items():
            return Markup('<ul class="sentences">{}</ul>').format(_each(Markup("<li>{}</li>"), map(_text, block.texts)))
        case Table():
            return _table(block, title)
        case Section():
            words = "".join(part.text for part in parts_of(block.title))
            folded, shown = Markup("<details><summary>{}</summary>{}</details>"), Markup("<h3>{}</h3>{}")
            section = folded if block.is_folded else shown
            return section.format(_text(block.title), to_html(block.blocks, words))
        case Caution():
            return Markup('<section class="alarm"><h2>{}</h2><p>{}</p><ul>{}</ul></section>').format(
                block.title, block.sentence, _each(Markup("<li>{}</li>"), block.reasons)
            )


def _table(table: Table, title: str) -> Markup:
    """Return a table that a narrow screen shows as a card per row; roles say that it is a table even so."""
    sides = [Markup(' class="right"') if column.is_number else Markup("") for column in table.columns]
    heads = [
        Markup('<th scope="col" role="columnheader"{}>{}</th>').format(side, column.heading)
        for side, column in zip(sides, table.columns, strict=True)
    ]
    rows = []
    for first, *others in table.rows:
        cells = [
            Markup('<td role="cell"{} data-label="{}">{}</td>').format(side, column.heading, _text(cell))
            for side, column, cell in zip(sides[1:], table.columns[1:], others, strict=True)
        ]
        name = Markup('<th scope="row" role="rowheader">{}</th>').format(_text(first))
        rows.append(Markup('<tr role="row">{}{}</tr>').format(name, Markup("").join(cells)))
    return Markup(
        '<div class="scroll" tabindex="0" role="region" aria-label="{}"><table class="document stacked" role="table">'
        '<thead role="rowgroup"><tr role="row">{}</tr></thead><tbody role="rowgroup">{}</tbody></table></div>'
    ).format(
        title or ", ".join(column.heading for column in table.columns),
        Markup("").join(heads),
        Markup("\n").join(rows),
    )


def _each(element: Markup, texts: Iterable[str]) -> Markup:
    return Markup("").join(element.format(text) for text in texts)


def _text(text: Text) -> Markup:
    return Markup("").join(map(_span, parts_of(text)))


def _span(part: Span) -> Markup:
    if not part.text:
        return Markup("")
    shown = (Markup("{}") if part.is_own else Markup("<bdi>{}</bdi>")).format(part.text)
    if part.link:
        shown = Markup('<a href="#{}">{}</a>').format(part.link, shown)
    if part.tone is Tone.PLAIN:
        return shown
    kind = "muted" if part.tone is Tone.MUTED else f"badge {part.tone}"
    return Markup('<span class="{}">{}</span>').format(kind, shown)
