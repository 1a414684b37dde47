"""`assay prune`: free disk space by removing stored rows and cached answers that are no longer used."""

import json
import os
from dataclasses import asdict
from typing import Annotated

import typer

from deployments.cli._support.console import stdout
from deployments.cli._support.options import Json, declared_option
from deployments.cli._support.sizes import format_size, parse_days, parse_size
from deployments.cli._support.verb import VerbGroup

app = VerbGroup()

OlderThan = Annotated[
    str, typer.Option("--older-than", help="Remove what has not been used for this long: 12h, 30d, 8w.")
]
MaxSize = Annotated[
    str | None,
    typer.Option(
        "--max-size",
        help="Maximum size of the stored rows, and of the answers: 500MB. The least recently used are removed first.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Remove; without this option, only show what would be removed.")]
Tables = Annotated[
    str | None,
    declared_option("tables", "--tables"),
]
Runs = Annotated[
    str | None,
    typer.Option("--runs", metavar="FOLDER", help="Folder of runs to remove by --keep-last and --keep-for."),
]
KeepLast = Annotated[
    int | None,
    typer.Option("--keep-last", min=1, help="Keep this many of the latest runs per deployment, or else per source."),
]
KeepFor = Annotated[str | None, typer.Option("--keep-for", help="Keep runs younger than this: 12h, 90d, 8w.")]
BaselineStore = Annotated[
    str | None,
    typer.Option("--baselines", metavar="FOLDER|URL", help="Accepted baselines, whose runs stay (deploy.baselines)."),
]
Cache = Annotated[str | None, declared_option("cache")]
History = Annotated[str | None, declared_option("history")]
HistoryKeepLast = Annotated[
    int | None,
    typer.Option("--history-keep-last", min=1, help="Keep this many of the latest runs per evaluation in the history."),
]
HistoryKeepFor = Annotated[
    str | None, typer.Option("--history-keep-for", help="Keep runs younger than this in the history: 90d, 104w.")
]


@app.command()
def prune(
    older_than: OlderThan = "30d",
    max_size: MaxSize = None,
    tables: Tables = None,
    cache: Cache = None,
    runs: Runs = None,
    keep_last: KeepLast = None,
    keep_for: KeepFor = None,
    baselines: BaselineStore = None,
    history: History = None,
    history_keep_last: HistoryKeepLast = None,
    history_keep_for: HistoryKeepFor = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Remove unused rows and answers, old runs and old entries."""
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
    age, most = parse_days(older_than), None if max_size is None else parse_size(max_size)
    from flows.prune import PruneSettings, run_prune

    settings = PruneSettings(
        older_than_days=age,
        max_bytes=most,
        tables=tables,
        cache=cache,
        runs=runs,
        keep_last_runs=keep_last,
        keep_runs_days=None if keep_for is None else parse_days(keep_for),
        baselines=baselines,
        history=history,
        history_keep_last=history_keep_last,
        history_keep_days=None if history_keep_for is None else parse_days(history_keep_for),
        dry_run=not yes,
    )
    done = run_prune(settings)
    if as_json:
        stdout.print_json(json.dumps(asdict(done)))
        return
    verb = "would remove" if done.dry_run else "removed"
    files = f"{done.segments} segments of rows, {done.tables} tables, {done.sources} data files"
    stdout.print(f"{verb} {files} and {done.temporary} temporary files: {format_size(done.tables_bytes)}")
    if done.merged:
        merged = "would merge" if done.dry_run else "merged"
        stdout.print(f"{merged} {done.merged} small segments of rows into larger ones")
    stdout.print(f"{verb} {done.answers} answers: {format_size(done.answers_bytes)}")
    if runs is not None:
        size = format_size(done.run_folders_bytes)
        stdout.print(f"{verb} {done.run_folders} run folders below {runs}: {size}")
    if history_keep_last is not None or history_keep_for is not None:
        stdout.print(f"{verb} {done.recorded_runs} runs from the history; their folders stay")
    if done.runs:
        stdout.print(f"runs in progress: {done.runs}; files that they may need are kept")
    found = done.segments + done.merged + done.tables + done.sources + done.temporary
    found += done.answers + done.run_folders + done.recorded_runs
    if done.dry_run and found:
        stdout.print("nothing was removed; add --yes to remove")
