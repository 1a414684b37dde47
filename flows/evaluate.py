"""Evaluate a source and write a run folder: the flow `evaluate`."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.config.result_options import MonitoringOptions
from flows.config.run_config import RunConfig
from flows.execution.deployed_parameters import as_deployed
from flows.execution.engine import compute_rows
from flows.execution.read_source import read_source, retrieval_settings
from flows.execution.run import Run, start_run
from flows.execution.run_writing import write_run_folder
from flows.findings.computation import compute_findings, settle_findings, spent_so_far
from flows.findings.run_finding import ComputedRun
from flows.planning.planner import plan_run
from flows.planning.run_plan import RunPlan
from flows.publishing.artifacts import publish
from flows.publishing.history_record import NotRecordedError, record_surely
from flows.publishing.metrics_file import failure_in_metrics_file, write_metrics_file
from flows.publishing.run_subject import RunSubject, name_evaluation
from metric_core.errors import FailedCellsError
from tasks.findings.finding import RunRecords
from tasks.findings.table import lines_of
from tasks.prefect_support.budget_stop import stop_at_budget
from tasks.prefect_support.flow_parameters import late_flow, with_function
from tasks.prefect_support.lost_server import SERVER_GONE, outlive_server
from tasks.prefect_support.patience import crash_without_server
from tasks.record.findings import HasEntry
from tasks.rows.computed_tables import RunTables
from tasks.runs.run_folder import RunFolder
from tasks.sources.in_memory import save_dataset
from tasks.stages.retrieval import retrieval
from tasks.stages.samples import SamplesResult

if TYPE_CHECKING:
    from datasets import Dataset


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of a finished evaluation.

    Args:
        rows: Number of rows that were evaluated.
        bad_rows: Number of rows that were left out.
        warnings: Sentences on the data and the run that the user should know.
        failures: Sentences on metrics with too many failed cells; see `fail_on_failed`.
        lacks: Sentences on what later runs need of this one but will not have, such as its entry in the history.
            They are warnings too.
    """

    folder: str
    rows: int
    bad_rows: int
    warnings: tuple[str, ...]
    failures: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()

    @classmethod
    def from_folder(cls, folder: str | Path) -> "Evaluation":
        """Return the evaluation whose run folder this is.

        Raises:
            RunFolderError: The folder does not hold a finished run.
        """
        finished = RunFolder(Path(folder))
        record = finished.read_finished_record()
        return cls(
            folder=str(folder),
            rows=record.rows,
            bad_rows=record.bad_row_count,
            warnings=record.warnings,
            failures=record.failures,
            lacks=tuple(lines_of(RunRecords(record, finished.read_summary(), finished.path), "lacks")),
        )

    def refuse_failures(self) -> "Evaluation":
        """Return the evaluation, if its cells did not fail too often.

        Raises:
            FailedCellsError: Too many cells of a metric failed, or no cell has a value.
        """
        if self.failures:
            raise FailedCellsError(self.folder, self.failures)
        return self


@late_flow(name="evaluate", flow_run_name=name_evaluation, persist_result=False, validate_parameters=False)
@crash_without_server
@stop_at_budget
@as_deployed(index=True, version=True)
def evaluate(config: RunConfig, index: str = "", version: str = "") -> Evaluation:
    """Evaluate a source and write a run folder.

    Args:
        config: Configuration of the run.
        index: Id of the index that the data are about, for names and artifacts.
        version: Version of this index.

    Returns:
        The run folder and the numbers of rows.

    Raises:
        FailedCellsError: The run is finished, but too many of its cells failed.
        BudgetSpentError: The run stopped because its budget is spent.
        AssayError: Anything else that the user can fix; the message says how.
    """
    return _evaluate_as(config, lambda: plan_run(config), RunSubject.of_run(index, version))


def evaluate_plan(plan: RunPlan) -> Evaluation:
    """Run the flow `evaluate` by a plan that is made and checked.

    Args:
        plan: Plan of a run; the parameter of the flow run is its record.
    """

    @crash_without_server
    @stop_at_budget
    def run(config: RunConfig, index: str = "", version: str = "") -> Evaluation:
        del config  # the plan of which is made
        return _evaluate_as(plan.monitoring, lambda: plan, RunSubject.of_run(index, version))

    planned: Any = with_function(evaluate, run)
    return outlive(lambda: planned(plan.record))


def _evaluate_as(
    options: MonitoringOptions,
    make_plan: Callable[[], RunPlan],
    subject: RunSubject,
    before: Sequence[HasEntry] = (),
) -> Evaluation:
    with (
        failure_in_metrics_file(options, subject),
        start_run(make_plan(), spent_so_far, subject=subject, before=before) as run,
    ):
        evaluation = _evaluate(run)
    return evaluation.refuse_failures()  # after the block, which marks a run as failed if it raises


def _evaluate(run: Run) -> Evaluation:
    started = time.monotonic()
    plan, entries = run.plan, dict[str, Any]()
    if plan.source.retriever is None:
        read = read_source(plan)
    else:
        fetched = retrieval(retrieval_settings(plan), run.tables)
        plan = plan.with_fetched_contexts(fetched.source)
        read = fetched.add_to(read_source(plan))
        entries |= {"config": plan.record, "retrieval": fetched.to_record()}
    tables = compute_rows(run, read.refs)
    entries["seconds"] = round(time.monotonic() - started, 3)
    return finish(run, read, tables, sum(ref.rows for ref in read.refs), entries)


def finish(run: Run, read: SamplesResult, tables: RunTables, rows: int, entries: Mapping[str, Any]) -> Evaluation:
    """Compute the findings of a run, write the run folder and publish the results.

    Args:
        rows: Number of rows that were computed.
        entries: Further entries of the record.
    """
    found = compute_findings(ComputedRun(run, tables, rows, run.record.extend(**entries)))
    read = replace(read, warnings=(*read.warnings, *found.warnings))
    write_run_folder(run, read, tables, found.record)
    if (settled := settle_findings(found)) is not None:
        write_run_folder(run, read, tables, settled.record)
    unpublished = publish(run.folder, run.subject, run.plan.monitoring.deploy.alerts)
    evaluation = Evaluation.from_folder(run.folder.path)
    outputs = run.plan.outputs
    unsent = _send_results(run)
    unwritten = write_metrics_file(outputs, run.record.name, run.subject, run.folder)
    page: tuple[str, ...] = ()
    unrecorded: tuple[str, ...] = ()
    try:
        page = record_surely(outputs.history, run.folder.path)
    except NotRecordedError as error:
        unrecorded = (str(error),)
    return replace(
        evaluation,
        warnings=(*evaluation.warnings, *unpublished, *unsent, *unwritten, *unrecorded, *page),
        lacks=(*evaluation.lacks, *unrecorded),
    )


def _send_results(run: Run) -> tuple[str, ...]:
    if not run.plan.outputs.sinks:
        return ()
    from flows.publishing.result_sinks import send_results  # noqa: PLC0415 few runs have sinks

    # A monitored run has an outcome only later.
    return send_results(run.plan.outputs, run.folder.path, later=run.record.start is not None)


def run_evaluation(
    config: RunConfig,
    dataset: "Dataset | None" = None,
    *,
    index: str = "",
    version: str = "",
    before: Sequence[HasEntry] = (),
) -> Evaluation:
    """Run the flow `evaluate`.

    Args:
        dataset: A `datasets.Dataset` to evaluate instead of the configuration's source.
        index: Id of the index that the data are about, for names and artifacts.
        before: Entries of findings made before the run, with which its record begins.
    """

    @crash_without_server
    @stop_at_budget
    def run(config: RunConfig, index: str = "", version: str = "") -> Evaluation:
        return _evaluate_as(config, lambda: plan_run(config), RunSubject.of_run(index, version), before)

    if dataset is not None:
        config = config.model_copy(update={"source": save_dataset(dataset, config.tables_root, config.redact)})
    flow: Any = with_function(evaluate, run) if before else evaluate
    return outlive(lambda: flow(config, index, version))


def outlive(run: Callable[[], Evaluation]) -> Evaluation:
    """Run a flow that evaluates; if the Prefect server goes away meanwhile, a warning says so.

    Raises:
        FailedCellsError: The run is finished, but too many of its cells failed.
    """
    evaluation, is_gone = outlive_server(run)
    return replace(evaluation, warnings=(*evaluation.warnings, SERVER_GONE)) if is_gone else evaluation
