"""The flow `evaluate`: from a source to a run folder, stage after stage, shard beside shard."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefect import flow
from prefect.futures import PrefectFuture

from flows.artifacts import progress_shown, publish
from flows.config import RunConfig, served, tables_root
from flows.incremental import against
from flows.plan import Plan, plan_of
from flows.recording import folder_of, manifest_of, recorded
from flows.runners import runner_of
from flows.stages import STAGE_TASKS, keeping_of, metrics_of, samples_settings, stage_settings
from metric_core.products import Stage
from tasks.earlier_run import EarlierRun
from tasks.home import assay_home
from tasks.judge.launch import owned_judge
from tasks.render import run_folder
from tasks.reporting import ReportingSettings, reporting
from tasks.resources import open_store
from tasks.samples import SamplesResult, samples
from tasks.settings import Settings
from tasks.sources.in_memory import saved
from tasks.tables.store import StageRef
from tasks.usage import StageUsage

if TYPE_CHECKING:
    from datasets import Dataset

CACHED = "Cached"
"""Prefect's name for the state of a task whose result was kept."""


class Evaluation(Settings):
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
    plan = plan_of(config)
    baseline = EarlierRun(config.baseline) if config.baseline is not None else None
    if config.answers is not None:
        open_store(config.answers).ensure()
    folder = folder_of(config)
    with run_folder.owned(folder), judge_at_hand(config) as ready:
        manifest = manifest_of(ready, plan)
        with recorded(folder, manifest), progress_shown():
            return _evaluate(ready, plan, folder, manifest, baseline)


@contextmanager
def judge_at_hand(config: RunConfig) -> Iterator[RunConfig]:
    """The configuration with its judge at hand: one that is to be launched runs as long as the block."""
    if config.judge.launch is None:
        yield config
        return
    with owned_judge(config.judge.launch, assay_home()) as running:
        yield served(config, running.url)


def _evaluate(
    config: RunConfig, plan: Plan, folder: Path, manifest: Mapping[str, Any], baseline: EarlierRun | None
) -> Evaluation:
    started = time.monotonic()
    tables = tables_root(config)
    read = samples.submit(samples_settings(config, plan), tables).result()
    refs = [*read.refs, *_run_shards(read, config, plan)]
    findings: dict[str, Any] = {"seconds": round(time.monotonic() - started, 3)}
    if baseline is not None:
        findings["baseline"] = against(baseline, refs)
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
        "bad_rows": [bad_row.model_dump() for bad_row in read.bad_rows],
        "warnings": read.warnings,
    }
    settings = ReportingSettings(folder=str(folder), metrics=metrics_of(plan), manifest={**manifest, **findings})
    reporting.submit(list(refs), settings).result()
    rows = sum(ref.rows for ref in read.refs)
    warnings = (*read.warnings, *publish(folder))
    return Evaluation(folder=str(folder), rows=rows, bad_rows=read.bad_row_count, warnings=warnings)


def run_evaluation(config: RunConfig, dataset: "Dataset | None" = None) -> Evaluation:
    """Runs the flow with the task runner that the configuration asks for.

    Args:
        config: what to evaluate, by which metrics, with which models, and where the results go.
        dataset: a `datasets.Dataset` to evaluate instead of the configuration's source.
    """
    if dataset is not None:
        config = config.model_copy(update={"source": saved(dataset, tables_root(config))})
    return evaluate.with_options(task_runner=runner_of(config))(config)


def _run_shards(read: SamplesResult, config: RunConfig, plan: Plan) -> list[StageRef]:
    settings = stage_settings(config, plan)
    keeping = {stage: keeping_of(stage, settings[stage], config) for stage in plan.stages if stage in STAGE_TASKS}
    stages = [stage for stage in plan.stages if stage in STAGE_TASKS]
    shards: list[dict[Stage, Any]] = []
    for number, ref in enumerate(read.refs):
        shard: dict[Stage, Any] = {Stage.SAMPLES: ref}
        for stage in stages:
            before = [shard[earlier] for earlier in plan.before(stage)]
            shard[stage] = STAGE_TASKS[stage].submit(before, settings[stage], keeping[stage], number)
        shards.append(shard)
    return [ref_of(shard[stage]) for shard in shards for stage in stages]


def ref_of(future: PrefectFuture[StageRef]) -> StageRef:
    """The reference to a stage's table; one that was kept cost this run nothing."""
    ref = future.result()
    if future.state.name != CACHED:
        return ref
    return ref.model_copy(update={"usage": StageUsage(questions=ref.usage.questions, stored=ref.usage.questions)})
