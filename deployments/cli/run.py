"""`assay run`: evaluates a source and prints the summary."""

import json
import logging
import os
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deployments.cli.console import stderr, stdout
from deployments.cli.options import (
    ColumnMap,
    ConfigFile,
    EmptyText,
    IdColumn,
    Json,
    JudgeBackend,
    Limit,
    Metrics,
    Model,
    OnBadRow,
    Source,
    judge_table,
    overrides,
)
from deployments.cli.progress import stage_progress
from deployments.cli.summary import LOWER_IS_BETTER, reason_lines, summary_table
from deployments.local_server import start_server, use_server

if TYPE_CHECKING:
    from flows.config import RunConfig
    from flows.evaluate import Evaluation

Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", envvar="ASSAY_OUT", help="Run folder. Default: runs/<time>-<source>."),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show Prefect's log on stderr.")]


def run(
    source: Source = None,
    config: ConfigFile = None,
    metrics: Metrics = None,
    judge: JudgeBackend = None,
    model: Model = None,
    out: Out = None,
    limit: Limit = None,
    on_bad_row: OnBadRow = None,
    empty_text: EmptyText = None,
    column_map: ColumnMap = None,
    id_column: IdColumn = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Evaluate a source: print the summary, write the run folder."""
    from flows.config import load_config  # noqa: PLC0415 keeps `assay --help` quick

    file, said = overrides(
        source,
        config,
        metrics=metrics,
        judge=judge_table(judge, model),
        out=None if out is None else str(out),
        limit=limit,
        on_bad_row=on_bad_row,
        empty_text=empty_text,
        column_map=column_map,
        id_column=id_column,
    )
    evaluation = _evaluate(load_config(file, said), verbose, quiet=as_json)
    _print(evaluation, as_json)


def _evaluate(config: "RunConfig", verbose: bool, quiet: bool) -> "Evaluation":
    from flows.plan import plan_of  # noqa: PLC0415
    from tasks.home import assay_home  # noqa: PLC0415 keeps `assay --help` quick

    plan = plan_of(config)
    starting = start_server(assay_home())
    _set_log_levels(verbose)
    _load_models(config)
    with use_server(starting.wait()), nullcontext() if quiet else stage_progress(plan.stages):
        from flows.evaluate import run_evaluation  # noqa: PLC0415 Prefect reads its settings when it is imported

        return run_evaluation(config)


def _set_log_levels(verbose: bool) -> None:
    """Quiet unless asked: what a person must know is said by the command itself."""
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "INFO" if verbose else "CRITICAL")
    for worker in () if verbose else ("APILogWorker", "EventsWorker"):
        logging.getLogger(worker).setLevel(logging.ERROR)


def _load_models(config: "RunConfig") -> None:
    """Loads the models while the server starts."""
    from tasks.resources import preload  # noqa: PLC0415 loads spaCy and onnxruntime

    threading.Thread(target=preload, args=(config.embedder, config.language), name="load-models", daemon=True).start()


def _print(evaluation: "Evaluation", as_json: bool) -> None:
    from tasks.render import run_folder  # noqa: PLC0415 keeps `assay --help` quick

    folder = Path(evaluation.folder)
    manifest = run_folder.read_json(folder, run_folder.MANIFEST)
    summary = run_folder.read_json(folder, run_folder.SUMMARY)
    if as_json:
        stdout.print_json(json.dumps({"folder": evaluation.folder, "judge": manifest["judge"], **summary}))
        return
    for warning in evaluation.warnings:
        stderr.print(f"warning: {warning}", style="yellow", markup=False, soft_wrap=True)
    stdout.print(f"{summary['rows']} rows of {manifest['source']}", style="bold", markup=False, soft_wrap=True)
    stdout.print(summary_table(summary))
    if any(metric["direction"] == "lower" for metric in summary["metrics"]):
        stdout.print(f"{LOWER_IS_BETTER.strip()} lower is better")
    for line in reason_lines(summary):
        stdout.print(f"not scored, {line}", markup=False, soft_wrap=True)
    stdout.print(f"judge: {manifest['judge']['note']}", markup=False, soft_wrap=True)
    if evaluation.bad_rows:
        stdout.print(f"left out: {evaluation.bad_rows} bad rows, listed in run.json and in the report", markup=False)
    stdout.print(f"run folder: {evaluation.folder}", markup=False, soft_wrap=True)
    stdout.print(f"report: {folder / run_folder.REPORT}", markup=False, soft_wrap=True)
