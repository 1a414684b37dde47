"""A document in its three media: the same words in each, and no text of others is markup in any."""

import io

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from deployments.cli._support.print_document import print_document, print_lines
from tasks.documents.blocks import Block, Caution, Items, Line, Section, Span, Tone, make_table, own
from tasks.documents.html import to_html
from tasks.documents.markdown import to_markdown

ATTACK = r"\|[x](https://evil.example) [bold]b[/] `c` <img src=x> @all"
DOCUMENT: list[Block] = [
    Caution("Not alike", "Why:", (ATTACK,)),
    Line((own("rows of "), ATTACK), is_strong=True),
    Items((ATTACK, own("run `assay report <b>`", Tone.BAD))),
    Section(ATTACK, (make_table(("row", "mean", "p"), [(ATTACK, "0.5", "<0.1")], extra=("p",)),)),
    Section(own("more"), (Line(Span(ATTACK, link="row-1")),), is_folded=True),
]


def print_at(width: int) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_document(console, DOCUMENT)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_terminal_shows_texts_as_they_are() -> None:
    assert print_at(400).count(ATTACK) == 6
    assert "NOT ALIKE: Why:" in print_at(400)


@pytest.mark.parametrize(("width", "is_shown"), [(120, True), (110, False)])
def test_a_narrow_terminal_leaves_out_extra_columns(width: int, is_shown: bool) -> None:
    assert ("<0.1" in print_at(width)) is is_shown


def test_a_terminal_names_long_sections_only() -> None:
    console = Console(file=io.StringIO(), width=80)
    print_document(console, [Section(own("9 more"), (Line("hidden"),), is_folded=True, is_long=True)])
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().split() == ["9", "more:", "in", "--html,", "--markdown", "and", "--json"]


def test_a_line_break_in_a_name_begins_no_line_of_a_terminal() -> None:
    console = Console(file=io.StringIO(), width=80, markup=False)
    name = "row\n[x] 48 of 48 answers are good"
    texts = (f"hangs on 1 row ({name})", own(f"without {name}"))
    print_document(console, [Line(name), Items(texts), Caution(name, name, (name,))])
    print_lines(console, [f"judge: {name}"])
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert len(lines) == 6
    assert not any(line.startswith("[x]") for line in lines)


def test_markdown_has_texts_of_others_in_code_spans() -> None:
    text = to_markdown(DOCUMENT)
    tokens = [each for block in MarkdownIt("commonmark").enable("table").parse(text) for each in block.children or ()]
    assert not {token.type for token in tokens} & {"link_open", "image", "html_inline"}
    assert "@all" not in "".join(token.content for token in tokens if token.type != "code_inline")
    assert sum("@all" in token.content for token in tokens) == 6
    assert "- 🔴 run `assay report <b>`" in text
    assert "|---|---:|---:|" in text
    assert "<details><summary>more</summary>" in text


def test_html_escapes_texts_and_links_to_the_page_only() -> None:
    text = to_html(DOCUMENT)
    assert "<img" not in text
    assert text.count("&lt;img src=x&gt;") == 7  # the title of the section names its table, too
    assert '<a href="#row-1">' in text
    assert '<th scope="col" role="columnheader" class="right">mean</th>' in text
