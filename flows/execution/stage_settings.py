"""What every stage of a run is told: its settings, and where and by which identity its tables are kept."""

from typing import Any

from flows.config.run_config import RunConfig, tables_root
from flows.execution.plan import Plan
from metric_core.stages import Product, Stage
from tasks.options.judged_settings import JudgedSettings
from tasks.options.metric_settings import MetricSettings
from tasks.options.narrow import narrow
from tasks.options.retriever_options import RetrieverOptions
from tasks.options.settings import Settings
from tasks.stages.aggregation import AggregationSettings, aggregation
from tasks.stages.base import StageTask, TableStorage
from tasks.stages.claims import ClaimsSettings, claims
from tasks.stages.entities import EntitiesSettings, entities
from tasks.stages.explanations import ExplanationsSettings, explanations
from tasks.stages.fingerprint import settings_fingerprint
from tasks.stages.questions import QuestionsSettings, questions
from tasks.stages.ratings import RatingsSettings, ratings
from tasks.stages.retrieval import RetrievalSettings
from tasks.stages.samples import SamplesSettings
from tasks.stages.similarity import SimilaritySettings, similarity
from tasks.stages.verdicts import VerdictsSettings, verdicts

STAGE_TASKS: dict[Stage, StageTask[Any]] = {
    task.stage: task for task in (claims, entities, questions, ratings, verdicts, similarity, explanations, aggregation)
}
"""The stages that work shard by shard."""


def samples_settings(config: RunConfig, plan: Plan) -> SamplesSettings:
    """Return the settings of the stage that reads the rows."""
    return narrow(
        config,
        SamplesSettings,
        shard_rows=config.rows_a_shard(),
        required=plan.required,
    )


def retrieval_settings(config: RunConfig, retriever: RetrieverOptions) -> RetrievalSettings:
    """Return the settings of the step that fetches contexts."""
    return narrow(config, RetrievalSettings, retriever=retriever)


def use_fetched_contexts(config: RunConfig, source: str) -> RunConfig:
    """The configuration for a question set whose contexts have been fetched: the rows bear their own names and ids."""
    read: dict[str, Any] = {"source": source, "retriever": None, "column_map": {}, "id_column": None, "limit": None}
    return config.model_copy(update=read)


def stage_settings(config: RunConfig, plan: Plan) -> dict[Stage, Settings]:
    """Return the settings of every stage that works shard by shard."""
    rated = tuple(MetricSettings.of(request) for request in plan.requests if Product.RATINGS in request.products)
    every_context = reads_every_context(config, plan)
    explained = "all" if config.explain == "all" else "unsupported"
    # The configuration names stages under `refresh`; the settings of a stage say whether it is one of them.
    refresh = config.refresh.__contains__
    return {
        Stage.CLAIMS: narrow(
            config, ClaimsSettings, products=plan.products_of(Stage.CLAIMS), refresh=refresh(Stage.CLAIMS)
        ),
        Stage.ENTITIES: narrow(config, EntitiesSettings, products=plan.products_of(Stage.ENTITIES)),
        Stage.QUESTIONS: narrow(config, QuestionsSettings, count=plan.question_count, refresh=refresh(Stage.QUESTIONS)),
        Stage.RATINGS: narrow(config, RatingsSettings, metrics=rated, refresh=refresh(Stage.RATINGS)),
        Stage.VERDICTS: narrow(
            config,
            VerdictsSettings,
            products=plan.products_of(Stage.VERDICTS),
            every_context=every_context,
            refresh=refresh(Stage.VERDICTS),
        ),
        Stage.SIMILARITY: narrow(config, SimilaritySettings, products=plan.products_of(Stage.SIMILARITY)),
        Stage.EXPLANATIONS: narrow(
            config, ExplanationsSettings, explained=explained, refresh=refresh(Stage.EXPLANATIONS)
        ),
        Stage.AGGREGATION: narrow(config, AggregationSettings, metrics=metrics_of(plan)),
    }


def reads_every_context(config: RunConfig, plan: Plan) -> bool:
    """Whether claims are asked against each context even where noise sensitivity does not read the answer.

    With probabilities it reads them all, and what a metric of the user's own reads only that metric knows.
    """
    own = (request for request in plan.requests if request.metric.origin)
    return config.verdict == "probability" or any(Product.CLAIMS_BY_EACH_CONTEXT in each.products for each in own)


def judged_settings(config: RunConfig) -> JudgedSettings:
    """Return the settings under which a stage would ask the judge of the configuration."""
    return narrow(config, JudgedSettings, refresh=False)


def storage_of(stage: Stage, settings: Settings, config: RunConfig) -> TableStorage:
    """Scores are never kept: computing them costs less than being wrong about a formula that has changed."""
    identity = None if stage is Stage.AGGREGATION else settings_fingerprint(settings)
    return TableStorage(tables_root(config), identity, refresh=stage in config.refresh)


def metrics_of(plan: Plan) -> tuple[MetricSettings, ...]:
    """The metrics of a plan, as settings."""
    return tuple(MetricSettings.of(request) for request in plan.requests)
