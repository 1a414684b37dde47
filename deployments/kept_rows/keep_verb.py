"""`assay keep`: put rows that a run got wrong into a test set, and bring those that it has up to date."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from deployments.cli._support.console import stderr, stdout
from deployments.cli._support.options import ConfigFile, Json
from deployments.cli._support.print_document import print_table
from deployments.cli._support.verb import VerbGroup
from deployments.cli.report import RunFolder
from flows.config.loading import load_config
from tasks.documents.blocks import make_table
from tasks.kept_rows.keep import GRADUATES_AFTER, MOST, KeepRequest, KeptSet, keep_rows
from tasks.kept_rows.kept_row import KeptRow, RowState
from tasks.runtime.wording import shorten_path

app = VerbGroup()

_SHOWN = 20
_LONGEST_QUESTION = 60

_EXAMPLES = """Examples:

\b
assay keep runs/monday --where failed --to set.jsonl --chunks chunks.jsonl
assay keep runs/monday --where contradicted --where "faithfulness < 0.5" --to set.jsonl
assay run kept:set.jsonl --chunks chunks.jsonl --out runs/tuesday
assay keep runs/tuesday --to set.jsonl
"""


@app.command(epilog=_EXAMPLES)
def keep(
    run: RunFolder,
    to: Annotated[
        Path,
        typer.Option("--to", metavar="FILE", help="Test set (.jsonl); it is updated.", show_default=False),
    ],
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="CONDITION",
            help="Rows to keep: failed, a class of the diagnosis such as contradicted, or a limit such as "
            "'faithfulness < 0.5'. Without it, the set is only brought up to date. Can be repeated.",
            show_default=False,
        ),
    ] = None,
    chunks: Annotated[
        str | None,
        typer.Option("--chunks", metavar="PATH", help="All chunks of the index. Default: those that the run names."),
    ] = None,
    most: Annotated[
        int,
        typer.Option(
            "--most", min=1, help="Rows in the set, without graduates and retired ones, beyond which none is added."
        ),
    ] = MOST,
    graduates_after: Annotated[
        int,
        typer.Option(
            "--graduates-after", min=1, help="Good rebuilds, one after the other, after which a row graduates."
        ),
    ] = GRADUATES_AFTER,
    config: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Keep rows that went wrong until rebuilds get them right.

    Rows that the set has already are brought up to date with what the run says of them. Texts are redacted by the
    redactor of the configuration.
    """
    redact = load_config(config).redact
    result = keep_rows(KeepRequest(run, to, where or (), chunks, redact, most, graduates_after))
    if as_json:
        stdout.print_json(json.dumps(_content(result)))
        return
    states = [(str(state), f"{result.states[state]:,}") for state in RowState]
    print_table(stdout, make_table(("rows of the set", ""), states))
    for line in _lines(result):
        stdout.print(line)
    stdout.print(f"wrote {shorten_path(to)}")
    if result.index is None:
        stderr.print(
            "the chunks of the index are not known (--chunks), so that no row graduates or retires", style="yellow"
        )


def _lines(result: KeptSet) -> Iterator[str]:
    for row in result.new[:_SHOWN]:
        yield f"new, {_describe(row)}"
    if len(result.new) > _SHOWN:
        yield f"new: {len(result.new) - _SHOWN:,} more"
    for row, before in result.changes[:_SHOWN]:
        yield f"{before}, now {_describe(row)}"
    if len(result.changes) > _SHOWN:
        yield f"changed: {len(result.changes) - _SHOWN:,} more"
    if result.left_out:
        yield f"{result.left_out:,} more rows meet the condition; the set is full (--most)"


def _describe(row: KeptRow) -> str:
    assert row.kept is not None  # noqa: S101 all rows that are new or have changed
    question, why = str(row.content["user_input"]), row.kept.history[-1].why
    short = question if len(question) <= _LONGEST_QUESTION else f"{question[:_LONGEST_QUESTION]}..."
    return f"{row.kept.state}: {short}{f' ({why})' if why else ''}"


def _content(result: KeptSet) -> dict[str, Any]:
    return {
        "index": result.index,
        "states": {str(state): result.states[state] for state in RowState},
        "new": [row.content["id"] for row in result.new],
        "changes": [
            {"row": row.content.get("id"), "from": str(before), "to": str(row.kept and row.kept.state)}
            for row, before in result.changes
        ],
        "left_out": result.left_out,
    }
