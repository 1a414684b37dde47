"""The flow `rerun-stage`: `rerun` with parameters that people can type, for a deployment."""

from typing import Literal

from prefect import flow

from flows.evaluate import Evaluation
from flows.execution.deployed_parameters import as_deployed, is_own_run
from flows.execution.rerun_plan import parse_rerun_request
from flows.rerun import run_rerun
from metric_core.stages import Stage
from tasks.prefect_support.budget_stop import stop_at_budget
from tasks.prefect_support.patience import crash_without_server


@flow(name="rerun-stage", persist_result=False, validate_parameters=False)
@crash_without_server
@stop_at_budget
@as_deployed(run=is_own_run)
def rerun_stage(
    run: str,
    stage: Stage | None = None,
    rows: Literal["failed", "changed", "all"] | None = None,
    judge: str | None = None,
    out: str | None = None,
) -> Evaluation:
    """Rerun a finished run from a stage on, into a new run folder.

    Args:
        run: The run folder.
        stage: First stage to recompute; default all.
        rows: Rows with a failed cell, rows that the source has changed since, or all; default all with a stage, else
            those with a failed cell.
        judge: Another judge than the run had: builtin, or the URL of a server.
        out: The new run folder.

    Raises:
        AssayError: Anything that the user can fix; the message says how.
    """
    return run_rerun(parse_rerun_request(run=run, stage=stage, rows=rows, judge=judge, out=out))
