"""`assay rerun`: run a finished run again for failed cells, changed rows or other metrics."""

import json
from collections.abc import Mapping
from contextlib import nullcontext
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deployments.cli._support.console import stderr, stdout, use_log_format
from deployments.cli._support.dry_run_table import print_dry_run, stage_content
from deployments.cli._support.log_levels import set_log_levels
from deployments.cli._support.options import Json, combine, declared_option
from deployments.cli._support.progress_bars import stage_progress
from deployments.cli._support.verb import VerbGroup
from deployments.cli.run import Verbose, load_models, print_despite_failed_cells, print_evaluation
from deployments.local_server import start_server, use_server
from metric_core.errors import ConfigError
from metric_core.stages import Stage
from tasks.engine.registry import STAGES
from tasks.runs.finished_run import FinishedRun
from tasks.runtime.home import assay_home
from tasks.runtime.wording import suggest_nearest

if TYPE_CHECKING:
    from flows.execution.rerun_plan import Rerun

app = VerbGroup()

_ONCE_PER_RUN = {
    "samples": "`--rows changed` reads the source again",
    "reporting": "`assay report RUN` writes the report again",
}


class Rows(StrEnum):
    """The rows to recompute."""

    FAILED = "failed"
    CHANGED = "changed"
    ALL = "all"


@app.command()
def rerun(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run folder.", show_default=False)],
    rows: Annotated[
        Rows | None,
        typer.Option(
            help="Rows to recompute: those with a failed cell, those changed or added in the source, or all. "
            "Default: all with --stage, else failed.",
            show_default=False,
        ),
    ] = None,
    stage: Annotated[
        str | None,
        typer.Option(
            help="First stage to recompute, for all rows unless --rows says otherwise; stages that do not depend on it "
            "keep their tables."
        ),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics",
            "-m",
            metavar="METRIC,...",
            help="Metrics, comma-separated. Default: the metrics of the run. Can be repeated.",
        ),
    ] = None,
    judge: Annotated[
        str | None, typer.Option(metavar="builtin|URL", help="Another judge, or the same judge at another URL.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model of this judge, if its server has several.")] = None,
    judge_verdicts: Annotated[str | None, declared_option("verdicts", table=("judge",))] = None,
    judge_writing: Annotated[str | None, declared_option("writing", table=("judge",))] = None,
    judge_ratings: Annotated[str | None, declared_option("ratings", table=("judge",))] = None,
    cache: Annotated[
        str | None,
        typer.Option(metavar="FILE|URL", help="Another answer cache: a SQLite file or a postgresql:// URL."),
    ] = None,
    tables: Annotated[
        str | None,
        typer.Option(metavar="FOLDER|URL", help="Another table store, for example on another machine."),
    ] = None,
    on_bad_row: Annotated[
        str | None,
        typer.Option(metavar="fail|skip", help="With --rows changed: fail at bad rows, or leave them out."),
    ] = None,
    fail_on_failed: Annotated[float | None, declared_option("fail_on_failed")] = None,
    budget: Annotated[str | None, declared_option("budget")] = None,
    log_format: Annotated[str | None, declared_option("log_format")] = None,
    out: Annotated[str | None, typer.Option("--out", "-o", help="Folder of the new run.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what each stage would recompute and ask, and compute nothing.")
    ] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Run a finished run again: failed, changed or all rows."""
    earlier = FinishedRun(run)  # refuse other folders before Prefect is loaded, which takes a second
    use_log_format(_log_format(log_format, earlier.config))
    first = None if stage is None else _stage(stage)
    set_log_levels(verbose)
    from flows.execution.rerun_plan import parse_rerun_request, prepare_rerun

    options: dict[str, Any] = {"metrics": combine(metrics), "judge": judge, "model": model, "cache": cache}
    options |= {"tables": tables, "on_bad_row": on_bad_row, "fail_on_failed": fail_on_failed, "out": out}
    options["budget"] = budget
    options |= {"verdicts": judge_verdicts, "writing": judge_writing, "ratings": judge_ratings}
    request = parse_rerun_request(run=run, rows=None if rows is None else rows.value, stage=first, **options)
    ready = prepare_rerun(request)
    if dry_run:
        _show_preview(ready, as_json)
        return
    starting = start_server(assay_home())
    load_models(ready.plan.models, starting)
    with print_despite_failed_cells(as_json, verbose):
        with use_server(starting.wait()), nullcontext() if as_json else stage_progress(ready.plan.metrics.stages):
            from flows.rerun import run_rerun

            evaluation = run_rerun(request)
        print_evaluation(evaluation, as_json, verbose)


def _log_format(given: str | None, earlier: Mapping[str, object]) -> str:
    chosen = given or str(earlier.get("log_format", "text"))
    if chosen not in ("text", "json"):
        raise ConfigError(f"--log-format must be text or json, got {chosen!r}")
    return chosen


def _show_preview(ready: "Rerun", as_json: bool) -> None:
    from flows.dry_run.rerun_preview import preview_rerun

    preview = preview_rerun(ready)
    if as_json:
        stages = [{"stage": each.stage, **stage_content(each)} for each in preview.dry_run.stages]
        content = {"rows": preview.dry_run.rows, "recomputed": preview.recomputed, "stages": stages}
        stdout.print_json(json.dumps(content))
        return
    for problem in preview.dry_run.problems:
        stderr.print(f"warning: {problem}", style="yellow")
    print_dry_run(preview.dry_run, preview.recomputed)


def _stage(name: str) -> Stage:
    found = next((stage for stage in STAGES if stage == name), None)
    if name in _ONCE_PER_RUN:
        raise ConfigError(f"the stage {name} cannot be recomputed alone: {_ONCE_PER_RUN[name]}")
    if found is None:
        close = suggest_nearest(name, list(STAGES))
        hint = f"Did you mean {close}?" if close else f"The stages are: {', '.join(STAGES)}."
        raise ConfigError(f"there is no stage {name!r} to recompute. {hint}")
    return found
