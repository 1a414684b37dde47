"""Run a finished run again where its result can change: the flow `rerun`.

The results of all other rows are read from the stage tables in the earlier run's folder, so nothing is asked about them
even if the cache and the table store are empty. A stage whose table lacks what the metrics need is computed for all
rows.
"""

import time
from dataclasses import replace
from functools import partial

from prefect import flow

from flows.evaluate import Evaluation, finish, outlive
from flows.execution.engine import compute_rows
from flows.execution.read_source import read_source
from flows.execution.rerun_plan import Rerun, prepare_rerun, warn_about_reused_rows
from flows.execution.run import Run, start_run
from flows.findings.computation import spent_so_far
from flows.planning.rerun_request import RerunRequest
from flows.publishing.run_subject import name_rerun
from tasks.prefect_support.budget_stop import stop_at_budget
from tasks.prefect_support.patience import crash_without_server
from tasks.record.other_runs import RerunRecord, RunReference
from tasks.runs.earlier_rows import place_earlier_rows


@flow(name="rerun", flow_run_name=name_rerun, persist_result=False, validate_parameters=True)
@crash_without_server
@stop_at_budget
def rerun(request: RerunRequest) -> Evaluation:
    """Run a finished run again where its result can change, into a new run folder.

    Args:
        request: The run, and the rows and stages to recompute.

    Returns:
        The run folder and the numbers of rows.

    Raises:
        FailedCellsError: The run is finished, but too many of its cells failed.
        BudgetSpentError: The run stopped because its budget is spent.
        AssayError: Anything else that the user can fix; the message says how.
    """
    ready = prepare_rerun(request)
    origin = RunReference(run_id=ready.earlier.run_id, folder=str(ready.earlier.folder))
    with start_run(ready.plan, spent_so_far, origin) as run:
        evaluation = _rerun(ready, run)
    return evaluation.refuse_failures()  # after the block, which marks a run as failed if it raises


def run_rerun(request: RerunRequest) -> Evaluation:
    """Run the flow `rerun`."""
    return outlive(lambda: rerun(request))


def _rerun(ready: Rerun, run: Run) -> Evaluation:
    started = time.monotonic()
    read = ready.read_samples(read_source)
    chosen = ready.rows(read)
    given = partial(place_earlier_rows, ready.earlier, partial(ready.is_row_computed, chosen))
    tables = compute_rows(run, read.refs, given)
    rows = sum(ref.rows for ref in read.refs) if chosen is None else len(chosen)
    notes = warn_about_reused_rows(ready, run.record)
    warnings = (*(warning for warning in read.warnings if warning not in ready.earlier.notes), *notes)
    request = ready.request
    entry = RerunRecord(rows=request.chosen_rows, stage=request.stage, rows_anew=rows, notes=tuple(notes))
    seconds = round(time.monotonic() - started, 3)
    return finish(run, replace(read, warnings=warnings), tables, rows, {"rerun": entry, "seconds": seconds})
