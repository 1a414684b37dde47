"""`assay run`: evaluate a source and print the summary."""

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deployments.cli._support.console import stderr, stdout
from deployments.cli._support.log_levels import set_log_levels
from deployments.cli._support.options import Json, with_config
from deployments.cli._support.print_document import print_document, print_lines, print_table
from deployments.cli._support.progress_bars import stage_progress
from deployments.cli._support.run_lines import (
    failure_lines,
    left_out_lines,
    reason_lines,
    unscored_line,
    usage_lines,
)
from deployments.cli._support.verb import VerbGroup
from deployments.cli.example import EXAMPLES, write_examples
from deployments.local_server import LocalServer, start_server, use_server
from flows.config.run_config import RunConfig
from flows.planning.planner import plan_run
from flows.planning.run_plan import RunPlan
from metric_core.columns import REFERENCE, RESPONSE, RETRIEVED_CONTEXTS, USER_INPUT
from metric_core.errors import ConfigError, FailedCellsError, RunFolderError
from metric_core.records import Direction
from tasks.documents.blocks import Line, own
from tasks.documents.run.summary_rows import LOWER_IS_BETTER, note_lines, summary_table, usage_table, verdict_line
from tasks.documents.timestamps import format_timestamp
from tasks.findings.finding import RunRecords
from tasks.findings.table import blocks_of, cautions_of, lines_of
from tasks.opening.run_models import open_early, preload
from tasks.options.run_model_options import RunModelOptions
from tasks.record.run_record import RunRecord
from tasks.record.run_summary import RunSummary
from tasks.runs.run_folder import RunFolder
from tasks.runtime.home import assay_home
from tasks.runtime.start_up import gc_paused
from tasks.runtime.stored_data import shown_source
from tasks.runtime.threads import ThreadLimitError, start_thread
from tasks.runtime.wording import shorten_path

if TYPE_CHECKING:
    from flows.evaluate import Evaluation

app = VerbGroup()

_USUAL_COLUMNS = frozenset({USER_INPUT, RESPONSE, RETRIEVED_CONTEXTS, REFERENCE})
"""Columns of nearly all data: who lacks one should see what cannot be computed without it."""

_EXAMPLES = """Examples:

\b
assay run --example
assay run answers.jsonl
assay run assay.toml --limit 20 --out runs/trial
assay run log.csv --column-map prompt=user_input,gold=reference
assay run answers.jsonl --metrics "faithfulness,noise_sensitivity(mode=irrelevant)"
assay run answers.jsonl --judge http://localhost:8000/v1
"""

Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Explain scores and judge at length; show Prefect's log on stderr.")
]
Example = Annotated[
    bool, typer.Option("--example", help="Evaluate the example, written to examples/ as by `assay example`.")
]


@app.command(epilog=_EXAMPLES)
@with_config
def run(config: RunConfig, as_json: Json = False, verbose: Verbose = False, example: Example = False) -> None:
    """Evaluate a source: write a run folder, print a summary."""
    if example and config.source is not None:
        raise ConfigError(f"--example is a source, and {config.source} another: leave out one of them")
    if example:
        config = config.model_copy(update={"source": str(write_examples(EXAMPLES))})
    plan = plan_run(config)
    open_judges(plan)
    if not as_json:
        _name_replaced_run(plan.folder.out)
    starting = start_server(assay_home())
    set_log_levels(verbose)
    load_models(plan.models, starting)
    with print_despite_failed_cells(as_json, verbose):
        with use_server(starting.wait()), nullcontext() if as_json else stage_progress(plan.metrics.stages):
            with gc_paused():
                from flows.evaluate import evaluate_plan

            evaluation = evaluate_plan(plan)
        print_evaluation(evaluation, as_json, verbose)


@contextmanager
def print_despite_failed_cells(as_json: bool, verbose: bool) -> Iterator[None]:
    """Print the summary of a run in which too many cells failed before its error ends the command."""
    try:
        yield
    except FailedCellsError as error:
        from flows.evaluate import Evaluation

        print_evaluation(Evaluation.from_folder(error.folder), as_json, verbose)
        raise


def _name_replaced_run(out: str | None) -> None:
    """Print which finished run is in the folder until this one replaces it."""
    if out is None:
        return
    folder = RunFolder.from_option(out)
    with suppress(RunFolderError):
        created = format_timestamp(folder.read_finished_record().created)
        stderr.print(f"replaces the run of {created} in {shorten_path(folder.path)}")


def open_judges(plan: RunPlan) -> None:
    """Begin to open the judges of a run on servers: these are waited for while Prefect is imported."""
    if plan.metrics.kinds:
        open_early(plan.models.judges, plan.judged, plan.storage.tables_root)


def load_models(models: RunModelOptions, starting: LocalServer) -> None:
    """Load the models while the server starts; without a start to wait for, each is loaded when a text needs it.

    The thread is not a daemon: the libraries of the models abort a process that exits while they load.
    """
    if starting.process is None:
        return

    with suppress(ThreadLimitError):
        start_thread("load-models", preload, models.embedder, models.language, daemon=False)


def print_evaluation(evaluation: "Evaluation", as_json: bool, verbose: bool = False) -> None:
    """Print the summary of a finished run: the table, what the user asked for, a line on each of the rest, or all."""
    folder = RunFolder(Path(evaluation.folder))
    record, summary = folder.read_finished_record(), folder.read_summary()
    if as_json:
        stdout.print_json(json.dumps(_run_json(evaluation, record, summary)))
        return
    for warning in evaluation.warnings:
        stderr.print(f"warning: {warning}", style="yellow")
    run = RunRecords(record, summary, folder.path)
    title = (own(f"{summary.rows} rows of "), shown_source(record.source))
    print_document(stdout, [Line(title, is_strong=True), *cautions_of(run)])
    print_lines(stdout, lines_of(run, "headline"))
    print_table(stdout, summary_table(summary))
    print_lines(stdout, _lines(run))
    print_document(stdout, [*blocks_of(run)])
    if verbose:
        print_lines(stdout, _details(run))
        if (usage := usage_table(record)) is not None:
            print_table(stdout, usage)
    if evaluation.bad_rows:
        stdout.print(f"left out: {evaluation.bad_rows} bad rows, listed in run.json and in the report")
    stdout.print(f"report: {shorten_path(folder.report)}")
    if stdout.is_terminal:
        shown = shlex.quote(shorten_path(folder.path))
        stdout.print(f"next: assay report {shown} --open, assay label {shown}")


def _run_json(evaluation: "Evaluation", record: RunRecord, summary: RunSummary) -> dict[str, Any]:
    names = ("judge", "judges", "panel", "calibration", "usage", "stages", "cost", "throughput")
    content = record.model_dump(mode="json", include=set(names))
    for stage in content["stages"].values():
        del stage["digests"]
    empty = {"cost": None, "throughput": None}
    return {"folder": evaluation.folder, **empty, **content, "failures": evaluation.failures, **summary.to_json()}


def _lines(run: RunRecords) -> Iterator[str]:
    """Yield a line on each matter that every user should see, and the results of what this user asked for."""
    record, summary = run.record, run.summary
    lacking = {each: names for each, names in record.left_out.items() if names and _USUAL_COLUMNS.issuperset(names)}
    yield from (f"not computed, {line}" for line in left_out_lines(lacking))
    if any(metric.direction is Direction.LOWER for metric in summary.metrics):
        yield f"{LOWER_IS_BETTER} lower is better"
    yield from lines_of(run, "lines")
    if (unscored := unscored_line(summary)) is not None:
        yield unscored
    yield from failure_lines(record.usage)
    if record.repetition is not None:
        yield record.repetition


def _details(run: RunRecords) -> Iterator[str]:
    """Yield what the report explains: the meaning of scores, reasons for missing ones, the judges and their work."""
    record, summary = run.record, run.summary
    yield from note_lines(summary)
    yield from (f"not scored, {line}" for line in reason_lines(summary))
    if (meaning := verdict_line(record)) is not None:
        yield meaning
    yield from usage_lines(record.usage)
    yield from lines_of(run, "details")
