"""`assay docs`: list the pages of the documentation, or print one.

Messages name pages by this command, because whoever has installed a wheel has no folder `docs`.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.markdown import Markdown
from rich.theme import Theme

from deployments.cli._support.console import stdout
from deployments.cli._support.print_document import print_table
from deployments.cli._support.verb import VerbGroup
from metric_core.errors import ConfigError
from metric_core.parsing.suggestions import suggest_names
from tasks.documents.blocks import make_table

app = VerbGroup()

_PACKAGED = (Path(__file__).parent / "docs", Path(__file__).parents[2] / "docs")
"""The folder in a wheel, and the one in a checkout."""

_LISTED = ("", "start")
"""Folders whose pages are listed: `assay metrics` lists those of `metrics`, and `design` is for contributors."""

_READABLE = Theme({"markdown.code": "cyan", "markdown.code_block": "cyan"})
"""Styles for dark and light terminals."""


def _names(incomplete: str) -> list[str]:
    return [name for name in _pages() if name.startswith(incomplete)]


@app.command()
def docs(
    page: Annotated[
        str | None,
        typer.Argument(
            help="Page to print, as the list names it, or as a link does: judge, judge.md, docs/judge.md.",
            show_default=False,
            autocompletion=_names,
        ),
    ] = None,
) -> None:
    """List the pages of the documentation, or print one.

    On a terminal a page is laid out and shown by a pager; elsewhere it is printed in Markdown, as it was written.
    """
    pages = _pages()
    if page is None:
        listed = [name for name in pages if name.rpartition("/")[0] in _LISTED and not name.endswith(".json")]
        print_table(
            stdout, make_table(("page", "what it is about"), [(name, _title(pages[name])) for name in listed], ())
        )
        stdout.print("`assay docs PAGE` prints one; `assay docs README` says which page is for what.", style="dim")
        return
    path = _find(page, pages)
    text = path.read_text(encoding="utf-8")
    if not stdout.is_terminal:
        typer.echo(text, nl=False)
        return
    os.environ.setdefault("LESS", "FRX")  # as Git does: show colors, and leave a short text on the screen
    with stdout.pager(styles=shutil.which("less") is not None), stdout.use_theme(_READABLE):
        is_markdown = path.suffix == ".md"
        stdout.print(Markdown(text, code_theme="bw", hyperlinks=False) if is_markdown else text)


def _pages() -> dict[str, Path]:
    """Return the pages by name, which is the path without `.md`; a schema keeps its ending."""
    packaged = next(each for each in _PACKAGED if each.is_dir())
    files = sorted(path for ending in ("md", "json") for path in packaged.rglob(f"*.{ending}"))
    return {path.relative_to(packaged).as_posix().removesuffix(".md"): path for path in files}


def _find(wanted: str, pages: Mapping[str, Path]) -> Path:
    name = wanted.partition("#")[0].removeprefix("../").removeprefix("docs/").removesuffix(".md")
    if name in pages:
        return pages[name]
    nearest = suggest_names(name, pages)
    hint = f"Similar: {', '.join(nearest)}." if nearest else "`assay docs` lists the pages."
    raise ConfigError(f"there is no page {wanted}. {hint}")


def _title(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
