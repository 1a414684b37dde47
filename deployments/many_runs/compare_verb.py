"""`assay compare A B C ...`: say which of several runs may be the best, and at what cost."""

import json
from pathlib import Path
from typing import Annotated

import typer

from deployments.cli._support.console import stderr, stdout
from deployments.cli._support.options import Json, by_option, seed_option, split_names
from deployments.cli._support.print_document import print_document
from deployments.cli._support.verb import VerbGroup
from metric_core.errors import ConfigError, RunFolderError
from metric_core.statistics.resampling import SEED
from tasks.comparison.run_pair import Matching
from tasks.documents.markdown import to_markdown
from tasks.many_runs.compared_runs import ManyRuns, compare_many
from tasks.many_runs.many_page import many_page
from tasks.many_runs.many_words import blocks_of, many_to_dict
from tasks.runtime.atomic_files import write_output
from tasks.runtime.writable import check_file

app = VerbGroup()

_EXAMPLES = """Examples:

\b
assay compare runs/a runs/b runs/c --html many.html
assay compare runs/chunks/* --metric context_recall --match user_input
"""

Folders = Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders; files among them are left out.")]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="METRIC,...",
        help="Metric to rank by. Can be repeated. Default: all but costs; with fewer, less is left to chance.",
        show_default=False,
    ),
]
Match = Annotated[
    str | None,
    typer.Option("--match", envvar="ASSAY_COMPARE_MATCH", help="Column to match rows by. Default: their ids."),
]
Gate = Annotated[str | None, typer.Option("--gate", hidden=True)]
Markdown = Annotated[Path | None, typer.Option("--markdown", help="Write the comparison as Markdown.")]
Html = Annotated[Path | None, typer.Option("--html", help="Write the comparison as one offline page.")]


@app.command(epilog=_EXAMPLES)
def compare(
    folders: Folders,
    metrics: Metrics = None,
    by: Annotated[str | None, by_option("ASSAY_COMPARE_BY")] = None,
    match: Match = None,
    seed: Annotated[int | None, seed_option("ASSAY_COMPARE_SEED")] = None,
    gate: Gate = None,
    as_json: Json = False,
    markdown: Markdown = None,
    html: Html = None,
) -> None:
    """Compare several runs: which of them may be the best, at what cost, and what each loses."""
    if gate is not None:
        raise ConfigError("a gate checks one run: assay compare BASELINE RUN --gate FILE")
    for path in filter(None, (markdown, html)):
        check_file(path, "the comparison", RunFolderError)
    runs = list(dict.fromkeys(folder for folder in folders if not folder.is_file()))
    if len(runs) < 2:
        raise ConfigError(f"several runs are compared, and there is {len(runs)} run folder among the arguments")
    many = compare_many(runs, Matching(match, by), split_names(metrics), SEED if seed is None else seed)
    if markdown is not None:
        _save(markdown, f"## Comparison of {len(many.runs)} runs\n\n{to_markdown(blocks_of(many))}")
    if html is not None:
        _save(html, many_page(many))
    print_many(many, as_json)


def print_many(many: ManyRuns, as_json: bool) -> None:
    """Print the comparison of several runs."""
    if as_json:
        stdout.print_json(json.dumps(many_to_dict(many), allow_nan=False))
    else:
        print_document(stdout, blocks_of(many))


def _save(path: Path, text: str) -> None:
    write_output(path, text, "the comparison")
    stderr.print(f"wrote {path}")
