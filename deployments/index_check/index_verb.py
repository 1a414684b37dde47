"""`assay index check`: say what a rebuilt index lost, doubled or damaged, before anything is evaluated."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from deployments.cli._support.console import stdout
from deployments.cli._support.options import ConfigFile, Json
from deployments.cli._support.print_document import print_document
from deployments.cli._support.verb import VerbGroup
from flows.config.loading import load_config
from metric_core.errors import ConfigError
from tasks.documents.blocks import Line, Tone, own
from tasks.index_receipt.index_comparison import CheckRequest, check_index
from tasks.index_receipt.receipt_words import blocks_of_check, content_of_check, headline
from tasks.options.source_options import SourceOptions
from tasks.options.text_forms import RepeatedText
from tasks.reports.page import render_document
from tasks.runs.finished_run import FinishedRun
from tasks.runtime.atomic_files import write_output
from tasks.runtime.wording import shorten_path
from tasks.sources.redaction import Redaction
from tasks.sources.sample_reader import read_samples

BEYOND = 10
"""Exit code of an index beyond its limits, as of a gate that failed."""

app = VerbGroup(no_args_is_help=True)

_EXAMPLES = """Examples:

\b
assay index check chunks.jsonl --receipt index.receipt
assay index check chunks.jsonl --against index.receipt --receipt index.receipt
assay index check new.parquet --against old.parquet --questions questions.jsonl --html check.html
"""


@app.callback()
def index() -> None:
    """Check a rebuilt index against its earlier version."""


@app.command(epilog=_EXAMPLES)
def check(
    new: Annotated[
        list[str], typer.Argument(metavar="NEW...", help="Chunks of the index (JSONL, Parquet, ...), or a receipt.")
    ],
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against", metavar="OLD", help="The earlier index, or its receipt. Can be repeated.", show_default=False
        ),
    ] = None,
    receipt: Annotated[
        Path | None,
        typer.Option("--receipt", metavar="FILE", help="Write the receipt of the index, for the next check."),
    ] = None,
    questions: Annotated[
        str | None,
        typer.Option("--questions", metavar="SET", help="Question set, or run folder, whose touched rows are named."),
    ] = None,
    limits: Annotated[
        list[str] | None,
        typer.Option(
            "--max",
            metavar="KIND=SHARE",
            help="Share of documents or chunks beyond which the check fails: lost=0.02. Can be repeated.",
            show_default=False,
        ),
    ] = None,
    column_map: Annotated[
        list[str] | None,
        typer.Option("--column-map", metavar="DATA=SAMPLE,...", help="Column of the texts: body=retrieved_contexts."),
    ] = None,
    config: ConfigFile = None,
    as_json: Json = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the result as one offline page.")
    ] = None,
) -> None:
    """Say what a rebuilt index lost, doubled or damaged.

    Exit codes: 0 within the limits, 10 beyond them. The limits are those of deploy.index_limits, of --max, or the
    default ones. `assay docs index-check` explains the findings.
    """
    options = load_config(config)
    redaction = None if options.redact is None else Redaction(options.redact).text
    request = CheckRequest(
        new,
        against or (),
        {**options.deploy.index_limits, **_parse_limits(limits or ())},
        SourceOptions(column_map=RepeatedText(column_map or ())),
        redaction,
        None if questions is None else _rows_of(questions, SourceOptions(redact=options.redact)),
    )
    checked = check_index(request)
    if receipt is not None:
        checked.receipt.write(receipt)
    blocks = [*blocks_of_check(checked)]
    if html is not None:
        write_output(html, render_document(headline(checked), "Check of an index", blocks), "the check")
    if as_json:
        stdout.print_json(json.dumps(content_of_check(checked)))
    else:
        told = own(headline(checked), Tone.BAD if checked.beyond else Tone.GOOD)
        print_document(stdout, [Line(told, is_strong=True), *blocks])
        for path in filter(None, (receipt, html)):
            stdout.print(f"wrote {shorten_path(path)}")
    if checked.beyond:
        raise typer.Exit(BEYOND)


def _parse_limits(texts: Iterable[str]) -> dict[str, float]:
    """Return the limits that the command line gives.

    >>> _parse_limits(["lost=0.02"])
    {'lost': 0.02}
    """
    found = {}
    for text in texts:
        kind, _, share = text.partition("=")
        try:
            found[kind.strip()] = float(share)
        except ValueError:
            raise ConfigError(f"--max must have the form KIND=SHARE, such as lost=0.02, got {text!r}") from None
    return found


def _rows_of(address: str, options: SourceOptions) -> Callable[[], Iterable[Any]]:
    """Return a function that reads the rows of a question set, or of the run in a folder."""
    if (Path(address) / "run.json").is_file():
        return FinishedRun(Path(address)).samples
    return lambda: read_samples(address, options, {})
