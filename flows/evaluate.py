"""The flow `evaluate`: from a source to a run folder, stage after stage, shard beside shard."""

import platform
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import count
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, cast

from prefect import flow
from prefect.futures import PrefectFuture
from prefect.runtime import flow_run
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from flows.artifacts import progress_shown, publish
from flows.config import RunConfig, served, tables_root
from flows.incremental import against
from flows.plan import Plan, plan_of
from metric_core.errors import RunFolderError
from metric_core.products import Product, Stage
from tasks.aggregation import AggregationSettings, aggregation
from tasks.claims import ClaimsSettings, claims
from tasks.earlier_run import EarlierRun
from tasks.entities import EntitiesSettings, entities
from tasks.explanations import ExplanationsSettings, explanations
from tasks.home import assay_home
from tasks.identity import identity_of
from tasks.judge.launch import owned_judge
from tasks.judge.panel import PanelJudge
from tasks.questions import QuestionsSettings, questions
from tasks.ratings import RatingsSettings, ratings
from tasks.render import run_folder
from tasks.reporting import ReportingSettings, reporting
from tasks.resources import judge_of, open_embedder, open_pipeline, open_store
from tasks.samples import SamplesResult, SamplesSettings, samples
from tasks.settings import JudgedSettings, MetricSettings, Settings
from tasks.similarity import SimilaritySettings, similarity
from tasks.sources.in_memory import saved
from tasks.stage import Keeping, StageTask
from tasks.tables.store import StageRef
from tasks.usage import StageUsage
from tasks.verdicts import VerdictsSettings, verdicts

if TYPE_CHECKING:
    from datasets import Dataset

STAGE_TASKS: dict[Stage, StageTask[Any]] = {
    task.stage: task for task in (claims, entities, questions, ratings, verdicts, similarity, explanations, aggregation)
}
"""The stages that work shard by shard."""

CACHED = "Cached"
"""Prefect's name for the state of a task whose result was kept."""

_VERSIONS = ("rag-assay", "datasets", "onnxruntime", "prefect", "pyarrow", "spacy")


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
def recorded(folder: Path, manifest: Mapping[str, Any]) -> Iterator[None]:
    """Says in run.json that the run is running and, should the block fail, that it failed and why."""
    run_folder.write_json(folder / run_folder.MANIFEST, {**manifest, "status": "running"})
    try:
        yield
    except BaseException as error:
        reason = str(error) or type(error).__name__
        run_folder.write_json(folder / run_folder.MANIFEST, {**manifest, "status": "failed", "reason": reason})
        raise


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


def runner_of(config: RunConfig) -> TaskRunner[PrefectFuture[Any]]:
    """Runs as many stages at the same time as the configuration allows."""
    return cast("TaskRunner[PrefectFuture[Any]]", ThreadPoolTaskRunner[Any](max_workers=config.workers))


def folder_of(config: RunConfig, ending: str = "") -> Path:
    """The run folder that the configuration names, or a new one below runs/, whose name ends as told."""
    if config.out is not None:
        return Path(config.out).expanduser().absolute()
    stem = re.sub(r"\W+", "-", PurePosixPath(config.source or "").stem).strip("-").lower() or "run"
    name = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{stem}{ending}"
    return next(folder for folder in _numbered(Path("runs", name).absolute()) if _is_made(folder))


def _numbered(folder: Path) -> Iterator[Path]:
    yield folder
    yield from (folder.with_name(f"{folder.name}-{number}") for number in count(2))


def _is_made(folder: Path) -> bool:
    """Makes the folder; False if somebody else has: two runs may begin in the same second."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return False
    except OSError as error:
        raise RunFolderError(f"the run folder {folder} can not be made: {error.strerror or error}") from error
    return True


def samples_settings(config: RunConfig, plan: Plan) -> SamplesSettings:
    """The settings of the stage that reads the rows."""
    return SamplesSettings(
        source=config.source or "",
        column_map=config.column_map,
        id_column=config.id_column,
        limit=config.limit,
        on_bad_row=config.on_bad_row,
        empty_text=config.empty_text,
        shard_rows=config.rows_a_shard(),
        required=plan.required,
    )


def stage_settings(config: RunConfig, plan: Plan) -> dict[Stage, Settings]:
    """The settings of every stage that works shard by shard."""
    models = _models(config)
    rated = tuple(MetricSettings.of(request) for request in plan.requests if Product.RATINGS in request.products)
    stages = {
        Stage.CLAIMS: ClaimsSettings(products=plan.products_of(Stage.CLAIMS), **models),
        Stage.ENTITIES: EntitiesSettings(
            products=plan.products_of(Stage.ENTITIES), language=config.language, answers=config.answers
        ),
        Stage.QUESTIONS: QuestionsSettings(count=plan.question_count, **models),
        Stage.RATINGS: RatingsSettings(metrics=rated, **models),
        Stage.VERDICTS: VerdictsSettings(
            products=plan.products_of(Stage.VERDICTS), every_context=config.verdict == "probability", **models
        ),
        Stage.SIMILARITY: SimilaritySettings(
            products=plan.products_of(Stage.SIMILARITY), embedder=config.embedder, answers=config.answers
        ),
        Stage.EXPLANATIONS: ExplanationsSettings(
            explained="all" if config.explain == "all" else "unsupported", **models
        ),
        Stage.AGGREGATION: AggregationSettings(metrics=metrics_of(plan), verdict=config.verdict),
    }
    anew = {stage: _asking_anew(stages[stage]) for stage in config.refresh if stage in stages}
    return {**stages, **anew}


def _models(config: RunConfig) -> dict[str, Any]:
    """What every stage that asks a judge is told about models."""
    return {name: getattr(config, name) for name in ("judge", "panel", "embedder", "language", "answers")}


def _asking_anew(settings: Settings) -> Settings:
    return settings.model_copy(update={"refresh": True}) if isinstance(settings, JudgedSettings) else settings


def keeping_of(stage: Stage, settings: Settings, config: RunConfig) -> Keeping:
    """Scores are never kept: computing them costs less than being wrong about a formula that has changed."""
    identity = None if stage is Stage.AGGREGATION else identity_of(settings)
    return Keeping(tables_root(config), identity, refresh=stage in config.refresh)


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


def metrics_of(plan: Plan) -> tuple[MetricSettings, ...]:
    """The metrics of a plan, as settings."""
    return tuple(MetricSettings.of(request) for request in plan.requests)


def manifest_of(config: RunConfig, plan: Plan) -> dict[str, Any]:
    """What run.json says from the beginning: what runs, and with what."""
    judge = judge_of(JudgedSettings(**_models(config)))
    members = judge.members if isinstance(judge, PanelJudge) else (judge,)
    identities: Mapping[str, Any] = {
        "judge": judge.identity,
        "embedder": open_embedder(config.embedder).identity,
        "language": open_pipeline(config.language).identity,
    }
    return {
        "format": run_folder.FORMAT,
        "run_id": str(flow_run.id),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": config.source,
        "config": config.model_dump(mode="json"),
        **{name: _fields(identity) for name, identity in identities.items()},
        "judge_features": _fields(features) if (features := getattr(members[0], "features", None)) else None,
        "panel": [_fields(member.identity) for member in members] if len(members) > 1 else [],
        "left_out": {metric: list(columns) for metric, columns in plan.left_out.items()},
        "versions": {"python": platform.python_version()} | {package: version(package) for package in _VERSIONS},
    }


def _fields(identity: Any) -> dict[str, Any]:
    return {name: getattr(identity, name) for name in identity.__slots__}
