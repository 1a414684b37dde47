"""`assay rerun`: a finished run again, where cells failed, rows have changed, or more metrics are wanted."""

from contextlib import nullcontext
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from deployments.cli._support.options import Json
from deployments.cli._support.progress_bars import stage_progress
from deployments.cli.run import Verbose, load_models, print_evaluation, set_log_levels
from deployments.local_server import start_server, use_server
from metric_core.errors import ConfigError

if TYPE_CHECKING:
    from metric_core.stages import Stage


class Rows(StrEnum):
    """The rows that are computed anew."""

    FAILED = "failed"
    CHANGED = "changed"
    ALL = "all"


def rerun(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run folder.", show_default=False)],
    rows: Annotated[
        Rows, typer.Option(help="Rows with a failed cell, rows that the source has changed or added, or all.")
    ] = Rows.FAILED,
    stage: Annotated[
        str | None, typer.Option(help="First stage to compute anew; those that do not follow it keep their tables.")
    ] = None,
    metrics: Annotated[
        str | None, typer.Option("--metrics", "-m", help="Metrics, comma-separated. Default: those of the run.")
    ] = None,
    judge: Annotated[
        str | None, typer.Option(metavar="builtin|URL", help="Another judge than the run had, or the same elsewhere.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="That judge's model, if its server has several.")] = None,
    cache: Annotated[
        str | None,
        typer.Option(metavar="FILE|URL", help="Another cache than that of the run: a file, or postgresql://."),
    ] = None,
    tables: Annotated[
        str | None,
        typer.Option(metavar="FOLDER|URL", help="Another store of stage tables than the run had, on another machine."),
    ] = None,
    on_bad_row: Annotated[
        str | None,
        typer.Option(metavar="fail|skip", help="With --rows changed: stop at bad rows, or leave them out."),
    ] = None,
    out: Annotated[str | None, typer.Option("--out", "-o", help="The new run folder.")] = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Run a finished run again: failed, changed or all rows."""
    from tasks.runs.finished_run import FinishedRun  # noqa: PLC0415 keeps `assay --help` quick
    from tasks.runtime.home import assay_home  # noqa: PLC0415

    FinishedRun(run)  # what is no run folder needs no server
    first = None if stage is None else _stage(stage)
    starting = start_server(assay_home())
    set_log_levels(verbose)
    with use_server(starting.wait()):
        from flows.execution.rerun_plan import parse_request, prepare  # noqa: PLC0415
        from flows.rerun import run_rerun  # noqa: PLC0415 Prefect reads its settings when it is imported

        said = {"metrics": metrics, "judge": judge, "model": model, "cache": cache}
        said |= {"tables": tables, "on_bad_row": on_bad_row, "out": out}
        request = parse_request(run=run, rows=rows.value, stage=first, **said)
        ready = prepare(request)
        load_models(ready.config)
        with nullcontext() if as_json else stage_progress(ready.plan.stages):
            evaluation = run_rerun(request)
    print_evaluation(evaluation, as_json)


def _stage(name: str) -> "Stage":
    from flows.execution.plan import BEFORE  # noqa: PLC0415 keeps `assay --help` quick
    from tasks.runtime.wording import suggest_nearest  # noqa: PLC0415

    found = next((stage for stage in BEFORE if stage == name), None)
    if found is None:
        close = suggest_nearest(name, list(BEFORE))
        hint = f"Did you mean {close}?" if close else f"There are: {', '.join(BEFORE)}."
        raise ConfigError(f"there is no stage {name!r} to compute anew. {hint}")
    return found
