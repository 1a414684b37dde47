"""`assay rerun`: run a finished run again for failed cells, changed rows or other metrics."""

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
    """The rows to recompute."""

    FAILED = "failed"
    CHANGED = "changed"
    ALL = "all"


def rerun(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run folder.", show_default=False)],
    rows: Annotated[
        Rows,
        typer.Option(help="Rows to recompute: those with a failed cell, those changed or added in the source, or all."),
    ] = Rows.FAILED,
    stage: Annotated[
        str | None, typer.Option(help="First stage to recompute; stages that do not depend on it keep their tables.")
    ] = None,
    metrics: Annotated[
        str | None, typer.Option("--metrics", "-m", help="Metrics, comma-separated. Default: the metrics of the run.")
    ] = None,
    judge: Annotated[
        str | None, typer.Option(metavar="builtin|URL", help="Another judge, or the same judge at another URL.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model of this judge, if its server has several.")] = None,
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
    out: Annotated[str | None, typer.Option("--out", "-o", help="Folder of the new run.")] = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Run a finished run again: failed, changed or all rows."""
    from tasks.runs.finished_run import FinishedRun  # noqa: PLC0415 keeps `assay --help` quick
    from tasks.runtime.home import assay_home  # noqa: PLC0415

    FinishedRun(run)  # fail before a server is started if this is not a run folder
    first = None if stage is None else _stage(stage)
    starting = start_server(assay_home())
    set_log_levels(verbose)
    with use_server(starting.wait()):
        from flows.execution.rerun_plan import parse_request, prepare  # noqa: PLC0415
        from flows.rerun import run_rerun  # noqa: PLC0415 Prefect reads its settings when it is imported

        options = {"metrics": metrics, "judge": judge, "model": model, "cache": cache}
        options |= {"tables": tables, "on_bad_row": on_bad_row, "out": out}
        request = parse_request(run=run, rows=rows.value, stage=first, **options)
        ready = prepare(request)
        load_models(ready.config)
        with nullcontext() if as_json else stage_progress(ready.plan.stages):
            evaluation = run_rerun(request)
    print_evaluation(evaluation, as_json)


def _stage(name: str) -> "Stage":
    from tasks.runtime.wording import suggest_nearest  # noqa: PLC0415 keeps `assay --help` quick
    from tasks.stages.registry import STAGES  # noqa: PLC0415

    found = next((stage for stage in STAGES if stage == name), None)
    if found is None:
        close = suggest_nearest(name, list(STAGES))
        hint = f"Did you mean {close}?" if close else f"The stages are: {', '.join(STAGES)}."
        raise ConfigError(f"there is no stage {name!r} to recompute. {hint}")
    return found
