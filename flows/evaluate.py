"""The flow `evaluate`: from a source to a run folder, stage after stage, shard beside shard."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefect import flow
from prefect.runtime import flow_run

from flows.config.run_config import RunConfig, tables_root, with_launched_judge
from flows.execution.artifacts import publish, show_progress
from flows.execution.baseline_changes import compare_with_baseline
from flows.execution.calibration_lookup import with_maps
from flows.execution.plan import Plan, plan_run
from flows.execution.run_record import build_manifest, choose_folder, record_run, settings_for_manifest
from flows.execution.runners import start_runner
from flows.execution.shards import Shards, Submitted, Way
from flows.execution.stage_settings import (
    STAGE_TASKS,
    metrics_of,
    retrieval_settings,
    samples_settings,
    stage_settings,
    storage_of,
    use_fetched_contexts,
)
from metric_core.stages import Stage
from tasks.launcher import launch_for_scope
from tasks.models.models import open_cache, reset_clients_for_run
from tasks.prefect_support.concurrency_limits import create_limits
from tasks.runs import run_folder
from tasks.runs.finished_run import FinishedRun
from tasks.runtime.home import assay_home
from tasks.sources.in_memory import save_dataset
from tasks.stages.base import run_here
from tasks.stages.reporting import ReportingSettings, reporting
from tasks.stages.retrieval import retrieval
from tasks.stages.samples import SamplesResult, samples
from tasks.tables.table_store import StageRef
from tasks.tables.tables_in_use import mark_in_use

if TYPE_CHECKING:
    from datasets import Dataset


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a finished evaluation returns.

    Args:
        folder: the run folder.
        rows: rows evaluated.
        bad_rows: rows left out.
        warnings: what a person should know about the data.
    """

    folder: str
    rows: int
    bad_rows: int
    warnings: tuple[str, ...]


@flow(name="evaluate", persist_result=False, validate_parameters=True)
def evaluate(config: RunConfig) -> Evaluation:
    """Evaluates a source and writes a run folder.

    Args:
        config: what to evaluate, by which metrics, with which models, and where the results go.

    Returns:
        Where the results are, and how many rows they are about.

    Raises:
        AssayError: anything that the user can put right; the message says how.
    """
    plan = plan_run(config)
    baseline = FinishedRun(config.baseline) if config.baseline is not None else None
    if config.cache is not None:
        open_cache(config.cache).ensure()
    folder = choose_folder(config)
    with run_folder.lock_folder(folder), running_judge(config) as ready:
        manifest = build_manifest(ready, plan)
        in_use = mark_in_use(tables_root(ready), manifest["run_id"])
        with record_run(folder, manifest), in_use, show_progress(), start_runner(ready):
            return _evaluate(ready, plan, folder, manifest, baseline)


@contextmanager
def running_judge(config: RunConfig) -> Iterator[RunConfig]:
    """The configuration with its judge at hand: one that is to be launched runs as long as the block.

    Answers that could not be kept while the judge worked are kept at the end, if that is possible now.
    """
    reset_clients_for_run(str(flow_run.id))
    create_limits((config.judge, *config.panel), update=False)
    try:
        if config.judge.launch is None:
            yield config
            return
        with launch_for_scope(config.judge.launch, assay_home()) as running:
            yield with_launched_judge(config, running.url)
    finally:
        open_cache(config.cache).flush()


def _evaluate(
    config: RunConfig, plan: Plan, folder: Path, manifest: Mapping[str, Any], baseline: FinishedRun | None
) -> Evaluation:
    started = time.monotonic()
    tables = tables_root(config)
    findings: dict[str, Any] = {}
    if config.retriever is None:
        read = run_here(samples, samples_settings(config, plan), tables)
    else:
        fetched = retrieval(retrieval_settings(config, config.retriever), tables)
        config = use_fetched_contexts(config, fetched.source)
        read = fetched.added_to(run_here(samples, samples_settings(config, plan), tables))
        findings |= {"config": settings_for_manifest(config), "retrieval": fetched.said()}
    refs = [*read.refs, *_run_shards(read, config, plan)]
    findings["seconds"] = round(time.monotonic() - started, 3)
    if baseline is not None:
        findings["baseline"] = compare_with_baseline(baseline, refs)
    return finish(read, refs, plan, folder, {**manifest, **findings})


def finish(
    read: SamplesResult, refs: Sequence[StageRef], plan: Plan, folder: Path, manifest: Mapping[str, Any]
) -> Evaluation:
    """Has the run folder written.

    Args:
        read: the rows, and what was found when they were read.
        refs: the tables of all stages and shards, those of the samples included.
        plan: what was computed.
        folder: the run folder.
        manifest: what run.json says beside that.
    """
    findings = {
        "status": "completed",
        "rows_read": read.rows_read,
        "bad_row_count": read.bad_row_count,
        "bad_rows": [asdict(bad_row) for bad_row in read.bad_rows],
        "warnings": read.warnings,
    }
    settings = ReportingSettings(folder=str(folder), metrics=metrics_of(plan), manifest={**manifest, **findings})
    run_here(reporting, list(refs), settings)
    rows = sum(ref.rows for ref in read.refs)
    warnings = (*read.warnings, *publish(folder))
    return Evaluation(folder=str(folder), rows=rows, bad_rows=read.bad_row_count, warnings=warnings)


def run_evaluation(config: RunConfig, dataset: "Dataset | None" = None) -> Evaluation:
    """Runs the flow, on a data set at hand if there is one.

    Args:
        config: what to evaluate, by which metrics, with which models, and where the results go.
        dataset: a `datasets.Dataset` to evaluate instead of the configuration's source.
    """
    if dataset is not None:
        config = config.model_copy(update={"source": save_dataset(dataset, tables_root(config))})
    return evaluate(config)


def _run_shards(read: SamplesResult, config: RunConfig, plan: Plan) -> list[StageRef]:
    settings = with_maps(stage_settings(config, plan), config, plan)
    stages = [stage for stage in plan.stages if stage in STAGE_TASKS]
    keeping = {stage: storage_of(stage, settings[stage], config) for stage in stages}
    shards = Shards(config, dict.fromkeys(stages, sum(ref.rows for ref in read.refs)))

    def way(number: int, samples: StageRef) -> Way:
        """All stages at once: each waits by itself for those that it reads from."""
        tables: dict[Stage, Any] = {Stage.SAMPLES: samples}
        for stage in stages:
            before = [tables[earlier] for earlier in plan.before(stage)]
            tables[stage] = STAGE_TASKS[stage].submit(before, settings[stage], keeping[stage], number)
        done = yield {stage: Submitted(tables[stage], samples.rows) for stage in stages}
        return list(done.values())

    for number, ref in enumerate(read.refs):
        shards.add(way(number, ref))
    return shards.finished()
