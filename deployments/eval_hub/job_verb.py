"""`assay job`: run a job of eval-hub, and print its results in eval-hub's format."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deployments.cli._support.console import stderr, stdout
from deployments.cli._support.log_levels import set_log_levels
from deployments.cli._support.progress_bars import stage_progress
from deployments.cli._support.verb import VerbGroup
from deployments.eval_hub.hub_callback import HubCallback
from deployments.eval_hub.hub_exports import export_results
from deployments.eval_hub.job_config import DataFolders, JobOptions, build_config
from deployments.eval_hub.job_keys import mode
from deployments.eval_hub.job_results import build_results
from deployments.eval_hub.job_spec import JobSpec
from deployments.local_server import start_server, use_server
from flows.config.run_config import RunConfig
from flows.planning.planner import plan_run
from metric_core.errors import FailedCellsError, RunFolderError
from tasks.reports.exports.score_tables import Format, Shape, reshape, write_export
from tasks.runtime.atomic_files import write_output
from tasks.runtime.home import assay_home
from tasks.runtime.writable import check_file

if TYPE_CHECKING:
    from flows.evaluate import Evaluation

app = VerbGroup()

RESULTS = "job_results"


@app.command()
def job(
    file: Annotated[
        Path, typer.Argument(envvar="EVALHUB_JOB_SPEC_PATH", metavar="FILE", help="The JobSpec, as JSON.")
    ] = Path("/meta/job.json"),
    out: Annotated[str | None, typer.Option("--out", "-o", help="Run folder. Default: runs/<time>-<data>.")] = None,
    results: Annotated[
        Path | None,
        typer.Option("--results", help="File for the JobResults, besides stdout. Default: in the run folder."),
    ] = None,
    api_key: Annotated[
        str | None,
        typer.Option(
            "--api-key", envvar="ASSAY_JOB_API_KEY", help="Location of the judge's API key: env:NAME or block:NAME."
        ),
    ] = None,
    test_data: Annotated[
        Path | None, typer.Option("--test-data", help="Folder that is searched first for data. Default: /test_data.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Folder that is searched next, and base of a relative data_path. Default: /data."),
    ] = None,
    callback: Annotated[
        bool | None,
        typer.Option(
            "--callback/--no-callback",
            help="Report events to the job's callback_url. Default: if eval-hub runs the job, which sets EVALHUB_MODE.",
        ),
    ] = None,
    sinks: Annotated[
        list[str] | None,
        typer.Option(
            "--sink",
            metavar="NAME=ADDRESS",
            help="Server that gets the results, such as mlflow=http://localhost:5000. Can be repeated.",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress on stderr.")] = False,
) -> None:
    """Run a job of eval-hub: JobSpec in, JobResults out."""
    started = time.monotonic()
    spec = JobSpec.from_file(file)
    default = DataFolders()
    if results is not None:
        check_file(results, "the results", RunFolderError)
    folders = DataFolders(test_data or default.test, data or default.data)
    options = JobOptions(out, api_key, folders, tuple(sinks or ()))
    _warn(f"the job's field {field} is not used" for field in spec.unused)
    reports = bool(mode()) if callback is None else callback
    reporter = HubCallback(spec if reports else spec.model_copy(update={"callback_url": None}))
    with _show_problems(reporter), reporter.running():
        config = build_config(spec, options)
        if spec.primary_score is not None and spec.primary_score.metric not in spec.metrics:
            _warn([f"the job has no overall score: it does not compute its primary score {spec.primary_score.metric}"])
        evaluation = _evaluate(config, quiet)
        _warn(evaluation.warnings)
        folder = Path(evaluation.folder)
        job_results = build_results(spec, folder, time.monotonic() - started)
        rows = _write_rows(folder)
        job_results, unsent = export_results(file, spec, job_results, folder, rows)
        _warn(unsent)
        text = job_results.model_dump_json(indent=2)
        write_output(results or folder / f"{RESULTS}.json", text + "\n", "the results")
        stdout.out(text)
        evaluation.refuse_failures()  # partial results are written, but eval-hub must not take the job for a success
        reporter.report_completed(job_results)


@contextmanager
def _show_problems(reporter: HubCallback) -> Iterator[None]:
    try:
        yield
    finally:
        _warn(reporter.problems)


def _warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        stderr.print(f"warning: {warning}", style="yellow")


def _evaluate(config: RunConfig, quiet: bool) -> "Evaluation":
    plan = plan_run(config)
    set_log_levels(verbose=False)
    server = start_server(assay_home()).wait()
    with use_server(server), nullcontext() if quiet else stage_progress(plan.metrics.stages):
        from flows.evaluate import Evaluation, evaluate_plan

        try:
            return evaluate_plan(plan)
        except FailedCellsError as error:
            return Evaluation.from_folder(error.folder)


def _write_rows(folder: Path) -> list[Path]:
    """Write the scores per row in the two formats that eval-hub stores, and return the files."""
    rows = reshape(folder, Shape.RAGAS)
    files = [(file_format, folder / f"results.{file_format}") for file_format in (Format.JSONL, Format.CSV)]
    for file_format, path in files:
        write_export(rows, path, file_format)
    return [path for _, path in files]
