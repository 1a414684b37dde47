"""Evaluate a source and write a run folder: the flow `evaluate`."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
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
from flows.execution.shards import Shard, ShardQueue, Submitted
from flows.execution.stage_settings import (
    metrics_of,
    retrieval_settings,
    samples_settings,
    stage_settings,
    storage_of,
    use_fetched_contexts,
)
from metric_core.stages import Stage
from tasks.launcher import launch_for_scope
from tasks.models.caches import open_cache
from tasks.models.run_models import RunModels, models_for
from tasks.options.settings import Settings
from tasks.prefect_support.concurrency_limits import create_limits
from tasks.runs import run_folder
from tasks.runs.finished_run import FinishedRun
from tasks.runtime import progress
from tasks.runtime.home import assay_home
from tasks.sources.in_memory import save_dataset
from tasks.stages.prefect_task import run_here
from tasks.stages.reporting import ReportingSettings, reporting
from tasks.stages.retrieval import retrieval
from tasks.stages.samples import SamplesResult, samples
from tasks.stages.stage_task import STAGE_TASKS, TableStorage
from tasks.tables.table_store import StageRef
from tasks.tables.tables_in_use import mark_in_use

if TYPE_CHECKING:
    from datasets import Dataset


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of a finished evaluation.

    Args:
        folder: Run folder.
        rows: Number of rows that were evaluated.
        bad_rows: Number of rows that were left out.
        warnings: Sentences on the data and the run that the user should know.
    """

    folder: str
    rows: int
    bad_rows: int
    warnings: tuple[str, ...]


@flow(name="evaluate", persist_result=False, validate_parameters=True)
def evaluate(config: RunConfig) -> Evaluation:
    """Evaluate a source and write a run folder.

    Args:
        config: Configuration of the run.

    Returns:
        The run folder and the numbers of rows.

    Raises:
        AssayError: Anything that the user can fix; the message says how.
    """
    plan = plan_run(config)
    baseline = FinishedRun(config.baseline) if config.baseline is not None else None
    if config.cache is not None:
        open_cache(config.cache).ensure()
    folder = choose_folder(config)
    with run_folder.lock_folder(folder), running_judge(config) as ready:
        manifest = build_manifest(ready, plan, models_for(str(flow_run.id)))
        in_use = mark_in_use(tables_root(ready), manifest["run_id"])
        with record_run(folder, manifest), in_use, show_progress(), start_runner(ready):
            return _evaluate(ready, plan, folder, manifest, baseline)


@contextmanager
def running_judge(config: RunConfig) -> Iterator[RunConfig]:
    """Yield the configuration with a running judge; one that the configuration launches runs as long as the block.

    Answers that could not be cached while the judge worked are cached at the end, if that is possible then.
    """
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
        read = _read_samples(config, plan)
    else:
        fetched = retrieval(retrieval_settings(config, config.retriever), tables)
        config = use_fetched_contexts(config, fetched.source)
        read = fetched.add_to(_read_samples(config, plan))
        findings |= {"config": settings_for_manifest(config), "retrieval": fetched.manifest_entry()}
    refs = _run_shards(read, config, plan, models_for(manifest["run_id"]))
    findings["seconds"] = round(time.monotonic() - started, 3)
    if baseline is not None:
        findings["baseline"] = compare_with_baseline(baseline, refs)
    return finish(read, refs, plan, folder, {**manifest, **findings})


def finish(
    read: SamplesResult, refs: Sequence[StageRef], plan: Plan, folder: Path, manifest: Mapping[str, Any]
) -> Evaluation:
    """Write the run folder.

    Args:
        read: Result of reading the source.
        refs: Tables of all stages and shards, including the samples.
        plan: Plan of the run.
        folder: Run folder.
        manifest: Content of run.json, to which what was found is added.
    """
    findings = {
        "status": "completed",
        "rows_read": read.rows_read,
        "bad_row_count": read.bad_row_count,
        "bad_rows": [asdict(bad_row) for bad_row in read.bad_rows],
        "warnings": read.warnings,
    }
    settings = ReportingSettings(folder=str(folder), metrics=metrics_of(plan), manifest={**manifest, **findings})
    run_here(reporting, list(refs), settings, partial(progress.advance, Stage.REPORTING))
    rows = sum(ref.rows for ref in read.refs)
    warnings = (*read.warnings, *publish(folder))
    return Evaluation(folder=str(folder), rows=rows, bad_rows=read.bad_row_count, warnings=warnings)


def run_evaluation(config: RunConfig, dataset: "Dataset | None" = None) -> Evaluation:
    """Run the flow `evaluate`.

    Args:
        config: Configuration of the run.
        dataset: A `datasets.Dataset` to evaluate instead of the configuration's source.
    """
    if dataset is not None:
        config = config.model_copy(update={"source": save_dataset(dataset, tables_root(config))})
    return evaluate(config)


def _read_samples(config: RunConfig, plan: Plan) -> SamplesResult:
    settings, reporter = samples_settings(config, plan), partial(progress.advance, Stage.SAMPLES)
    read: SamplesResult = run_here(samples, settings, tables_root(config), reporter)
    return read


def _run_shards(read: SamplesResult, config: RunConfig, plan: Plan, models: RunModels) -> list[StageRef]:
    settings = with_maps(stage_settings(config, plan), config, plan, models)
    stages = plan.sharded_stages
    storage = {stage: storage_of(stage, settings[stage], config, models) for stage in stages}
    queue = ShardQueue(config, [stages], dict.fromkeys(stages, sum(ref.rows for ref in read.refs)))
    return queue.run(_Shard(number, ref, plan, settings, storage) for number, ref in enumerate(read.refs))


class _Shard(Shard):
    """A shard whose stages are all submitted at once: Prefect starts each when those that it reads from are done."""

    def __init__(
        self,
        number: int,
        samples: StageRef,
        plan: Plan,
        settings: Mapping[Stage, Settings],
        storage: Mapping[Stage, TableStorage],
    ) -> None:
        super().__init__(number, {Stage.SAMPLES: samples})
        self._plan = plan
        self._settings = settings
        self._storage = storage

    def submit(self, level: Sequence[Stage]) -> Mapping[Stage, Submitted]:
        samples = self.tables[Stage.SAMPLES]
        tables: dict[Stage, Any] = {Stage.SAMPLES: samples}
        for stage in level:
            inputs = [tables[earlier] for earlier in self._plan.inputs_of(stage)]
            tables[stage] = STAGE_TASKS[stage].submit(inputs, self._settings[stage], self._storage[stage], self.number)
        return {stage: Submitted(tables[stage], samples.rows) for stage in level}
