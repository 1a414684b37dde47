"""`assay example`: write the example data that the package brings."""

from pathlib import Path
from typing import Annotated

import typer

from deployments.cli._support.console import stderr, stdout
from deployments.cli._support.verb import VerbGroup
from metric_core.errors import ConfigError
from tasks.runtime.atomic_files import write_output
from tasks.runtime.wording import shorten_path

app = VerbGroup()

EXAMPLES = Path("examples")
"""Folder in which the guides name the examples, in a checkout and wherever they are written."""

_PACKAGED = (Path(__file__).parents[1] / "examples", Path(__file__).parents[2] / EXAMPLES)
"""The folder in a wheel, and the one in a checkout."""


@app.command()
def example(
    folder: Annotated[Path, typer.Argument(help="Folder to write. Files that exist in it are kept.")] = EXAMPLES,
) -> None:
    """Write example data: answers from a handbook."""
    write_examples(folder)
    stdout.print(f"evaluate with: assay run {shorten_path(folder / 'handbook.jsonl')}")


def write_examples(folder: Path) -> Path:
    """Write the examples to a folder, except files that exist, and return the path of the handbook's answers."""
    packaged = next(each for each in _PACKAGED if each.is_dir())
    files = sorted(path.relative_to(packaged) for path in packaged.rglob("*") if path.is_file())
    missing = [file for file in files if file.suffix != ".pyc" and not (folder / file).exists()]
    for file in missing:
        write_output(folder / file, (packaged / file).read_text(encoding="utf-8"), "the example", ConfigError)
    if missing:
        stderr.print(f"wrote {len(missing)} files to {shorten_path(folder)}, described in its README.md")
    return folder / "handbook.jsonl"
