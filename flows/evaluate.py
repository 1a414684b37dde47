"""The flow `evaluate`: from a source to a run folder, stage after stage, shard beside shard."""

import platform
import re
import time
from collections.abc import Iterator, Mapping
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

from flows.config import RunConfig, served, tables_root
from flows.plan import Plan, plan_of
from metric_core.errors import RunFolderError
from metric_core.products import Product, Stage
from tasks.aggregation import AggregationSettings, aggregation
from tasks.claims import ClaimsSettings, claims
from tasks.entities import EntitiesSettings, entities
from tasks.home import assay_home
from tasks.judge.launch import owned_judge
from tasks.questions import QuestionsSettings, questions
from tasks.ratings import RatingsSettings, ratings
from tasks.render import run_folder
from tasks.reporting import ReportingSettings, reporting
from tasks.resources import open_embedder, open_judge, open_pipeline
from tasks.samples import SamplesResult, SamplesSettings, samples
from tasks.settings import MetricSettings, Settings
from tasks.similarity import SimilaritySettings, similarity
from tasks.sources.in_memory import saved
from tasks.stage import StageTask
from tasks.tables.store import StageRef
from tasks.verdicts import VerdictsSettings, verdicts

if TYPE_CHECKING:
    from datasets import Dataset

STAGE_TASKS: dict[Stage, StageTask[Any]] = {
    task.stage: task for task in (claims, entities, questions, ratings, verdicts, similarity, aggregation)
}
"""The stages that work shard by shard."""

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
    folder = folder_of(config)
    with run_folder.owned(folder), _judge_of(config) as ready:
        manifest = _manifest(ready, plan)
        run_folder.write_json(folder / run_folder.MANIFEST, {**manifest, "status": "running"})
        try:
            return _evaluate(ready, plan, folder, manifest)
        except BaseException as error:
            reason = str(error) or type(error).__name__
            run_folder.write_json(folder / run_folder.MANIFEST, {**manifest, "status": "failed", "reason": reason})
            raise


@contextmanager
def _judge_of(config: RunConfig) -> Iterator[RunConfig]:
    """The configuration with its judge at hand: one that is to be launched runs as long as the block."""
    if config.judge.launch is None:
        yield config
        return
    with owned_judge(config.judge.launch, assay_home()) as running:
        yield served(config, running.url)


def _evaluate(config: RunConfig, plan: Plan, folder: Path, manifest: Mapping[str, Any]) -> Evaluation:
    started = time.monotonic()
    tables = tables_root(config)
    read = samples.submit(samples_settings(config, plan), tables).result()
    refs = [*read.refs, *_run_shards(read, config, plan, tables)]
    findings = {
        "status": "completed",
        "seconds": round(time.monotonic() - started, 3),
        "rows_read": read.rows_read,
        "bad_row_count": read.bad_row_count,
        "bad_rows": [bad_row.model_dump() for bad_row in read.bad_rows],
        "warnings": read.warnings,
    }
    settings = ReportingSettings(folder=str(folder), metrics=_metrics(plan), manifest={**manifest, **findings})
    reporting.submit(refs, settings).result()
    rows = sum(ref.rows for ref in read.refs)
    return Evaluation(folder=str(folder), rows=rows, bad_rows=read.bad_row_count, warnings=read.warnings)


def run_evaluation(config: RunConfig, dataset: "Dataset | None" = None) -> Evaluation:
    """Runs the flow with the task runner that the configuration asks for.

    Args:
        config: what to evaluate, by which metrics, with which models, and where the results go.
        dataset: a `datasets.Dataset` to evaluate instead of the configuration's source.
    """
    if dataset is not None:
        config = config.model_copy(update={"source": saved(dataset, tables_root(config))})
    runner = cast("TaskRunner[PrefectFuture[Any]]", ThreadPoolTaskRunner[Any](max_workers=config.workers))
    return evaluate.with_options(task_runner=runner)(config)


def folder_of(config: RunConfig) -> Path:
    """The run folder that the configuration names, or a new one below runs/."""
    if config.out is not None:
        return Path(config.out).expanduser().absolute()
    stem = re.sub(r"\W+", "-", PurePosixPath(config.source or "").stem).strip("-").lower() or "run"
    name = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{stem}"
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
        shard_rows=config.shard_rows,
        required=plan.required,
    )


def stage_settings(config: RunConfig, plan: Plan) -> dict[Stage, Settings]:
    """The settings of every stage that works shard by shard."""
    models: dict[str, Any] = {"judge": config.judge, "embedder": config.embedder, "language": config.language}
    rated = tuple(MetricSettings.of(request) for request in plan.requests if Product.RATINGS in request.products)
    return {
        Stage.CLAIMS: ClaimsSettings(products=plan.products_of(Stage.CLAIMS), **models),
        Stage.ENTITIES: EntitiesSettings(products=plan.products_of(Stage.ENTITIES), language=config.language),
        Stage.QUESTIONS: QuestionsSettings(count=plan.question_count, **models),
        Stage.RATINGS: RatingsSettings(metrics=rated, **models),
        Stage.VERDICTS: VerdictsSettings(
            products=plan.products_of(Stage.VERDICTS), every_context=config.verdict == "probability", **models
        ),
        Stage.SIMILARITY: SimilaritySettings(products=plan.products_of(Stage.SIMILARITY), embedder=config.embedder),
        Stage.AGGREGATION: AggregationSettings(metrics=_metrics(plan), verdict=config.verdict),
    }


def _run_shards(read: SamplesResult, config: RunConfig, plan: Plan, tables: str) -> list[StageRef]:
    settings = stage_settings(config, plan)
    stages = [stage for stage in plan.stages if stage in STAGE_TASKS]
    shards: list[dict[Stage, Any]] = []
    for number, ref in enumerate(read.refs):
        shard: dict[Stage, Any] = {Stage.SAMPLES: ref}
        for stage in stages:
            before = [shard[earlier] for earlier in plan.before(stage)]
            shard[stage] = STAGE_TASKS[stage].submit(before, settings[stage], tables, number)
        shards.append(shard)
    return [shard[stage].result() for shard in shards for stage in stages]


def _metrics(plan: Plan) -> tuple[MetricSettings, ...]:
    return tuple(MetricSettings.of(request) for request in plan.requests)


def _manifest(config: RunConfig, plan: Plan) -> dict[str, Any]:
    judge = open_judge(config.judge, config.embedder, config.language)
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
        "judge_features": _fields(features) if (features := getattr(judge, "features", None)) is not None else None,
        "left_out": {metric: list(columns) for metric, columns in plan.left_out.items()},
        "versions": {"python": platform.python_version()} | {package: version(package) for package in _VERSIONS},
    }


def _fields(identity: Any) -> dict[str, Any]:
    return {name: getattr(identity, name) for name in identity.__slots__}
