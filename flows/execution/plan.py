"""The plan of a run: what the chosen metrics need, each shared product once, stage after stage.

There are two levels of judging whatever is asked: claims, questions and ratings first, verdicts after; entities and
similarities run beside them, and scores are arithmetic on the rest. Explanations of verdicts, where they are wanted,
are written meanwhile.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from flows.config.run_config import RunConfig
from metric_core.columns import COLUMNS, RESPONSE, RETRIEVED_CONTEXTS, USER_INPUT
from metric_core.errors import ConfigError, SourceError
from metric_core.metric import MetricRequest
from metric_core.registry import default_suite
from metric_core.stages import PRODUCTS, Product, Stage, closure
from tasks.options.retriever_options import RetrieverOptions
from tasks.sources import SourceOptions, available_columns

DEFAULT_QUESTIONS = 3
"""Regenerated questions a response, for a metric that does not say how many."""

BEFORE: dict[Stage, tuple[Stage, ...]] = {
    Stage.CLAIMS: (Stage.SAMPLES,),
    Stage.ENTITIES: (Stage.SAMPLES,),
    Stage.QUESTIONS: (Stage.SAMPLES,),
    Stage.RATINGS: (Stage.SAMPLES,),
    Stage.VERDICTS: (Stage.SAMPLES, Stage.CLAIMS),
    Stage.SIMILARITY: (Stage.SAMPLES, Stage.QUESTIONS),
    Stage.EXPLANATIONS: (Stage.SAMPLES, Stage.CLAIMS, Stage.VERDICTS),
    Stage.AGGREGATION: (
        Stage.SAMPLES,
        Stage.CLAIMS,
        Stage.ENTITIES,
        Stage.QUESTIONS,
        Stage.RATINGS,
        Stage.VERDICTS,
        Stage.SIMILARITY,
    ),
}
"""Stage -> the stages whose tables it reads, of those that are in the plan."""

ON_CLAIMS = frozenset(
    product
    for product, spec in PRODUCTS.items()
    if spec.stage is Stage.VERDICTS and spec.requires and product is not Product.SENTENCE_RELEVANCE
)
"""The products that are verdicts on claims: those that can be explained."""

LEVELS: tuple[tuple[Stage, ...], ...] = (
    (Stage.SAMPLES,),
    (Stage.CLAIMS, Stage.QUESTIONS, Stage.RATINGS, Stage.ENTITIES),
    (Stage.VERDICTS, Stage.SIMILARITY),
    (Stage.EXPLANATIONS, Stage.AGGREGATION),
    (Stage.REPORTING,),
)
"""Stages that can run at the same time, level after level."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run computes.

    Args:
        requests: the metrics, in the order in which tables show them.
        products: every product they need, those that products need included.
        left_out: metric -> the columns it lacks, for metrics left out because nobody named them.
        explain: which verdicts on claims are explained.
    """

    requests: tuple[MetricRequest, ...]
    products: frozenset[Product]
    left_out: Mapping[str, tuple[str, ...]]
    explain: Literal["none", "unsupported", "all"] = "none"

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages that have something to do, in the order of their levels."""
        busy = {PRODUCTS[product].stage for product in self.products}
        always = {Stage.SAMPLES, Stage.AGGREGATION, Stage.REPORTING}
        if self.explain != "none" and self.products & ON_CLAIMS:
            always.add(Stage.EXPLANATIONS)
        return tuple(stage for level in LEVELS for stage in level if stage in busy | always)

    def products_of(self, stage: Stage) -> tuple[Product, ...]:
        """What a stage computes, in the order of the products' declaration."""
        return tuple(product for product in Product if product in self.products and PRODUCTS[product].stage is stage)

    def before(self, stage: Stage) -> tuple[Stage, ...]:
        """The stages whose tables a stage reads."""
        return tuple(earlier for earlier in BEFORE[stage] if earlier in self.stages)

    def users_of(self, product: Product) -> tuple[str, ...]:
        """The metrics that need a product, directly or through another product."""
        return tuple(request.key for request in self.requests if product in closure(request.products))

    @property
    def question_count(self) -> int:
        """Regenerated questions a response: the most that any metric wants."""
        wanted = [
            request.parameters.get("strictness", DEFAULT_QUESTIONS)
            for request in self.requests
            if Product.QUESTIONS in closure(request.products)
        ]
        return max(wanted, default=0)

    @property
    def required(self) -> dict[str, tuple[str, ...]]:
        """Metric -> the columns it needs."""
        return {request.key: request.columns for request in self.requests}


def make_plan(config: RunConfig, available: Sequence[str]) -> Plan:
    """The plan for the metrics that the configuration names, or for all that the data allows.

    Args:
        config: the configuration.
        available: the sample columns that the data has.

    Raises:
        ConfigError: an unknown metric or parameter.
        SourceError: no metric is named, and the data has the columns of none.
    """
    named = config.requests()
    requests = default_suite(available) if named is None else named
    if not requests:
        raise SourceError(
            f"the data has the columns {', '.join(available) or 'of no sample'}, which no metric can work on. "
            "`assay metrics` lists the columns that each needs; column_map gives your columns those names."
        )
    left_out = {}
    if named is None:
        chosen = {request.key for request in requests}
        everything = default_suite(tuple(COLUMNS))
        left_out = {
            request.key: tuple(column for column in request.columns if column not in available)
            for request in everything
            if request.key not in chosen
        }
    return Plan(tuple(requests), closure(p for request in requests for p in request.products), left_out, config.explain)


def plan_run(config: RunConfig) -> Plan:
    """The plan of a run, after a look at the columns of its source.

    Raises:
        ConfigError: no source is named, or a metric or parameter is unknown.
        SourceError: the source can not be read, or no metric can work on it.
    """
    if config.source is None:
        raise ConfigError(
            "there is nothing to evaluate: name a source, as an argument or as `source` in the configuration"
        )
    options = SourceOptions(column_map=config.column_map, id_column=config.id_column)
    columns = available_columns(config.source, options)
    return make_plan(config, columns if config.retriever is None else _with_fetched(config.retriever, columns))


def _with_fetched(retriever: RetrieverOptions, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of a question set once the index has given its contexts."""
    if USER_INPUT not in columns:
        raise SourceError(f"contexts are fetched for questions, and the source has no {USER_INPUT}; see column_map")
    fetched = {*columns, RETRIEVED_CONTEXTS} | ({RESPONSE} if retriever.generator else set())
    return tuple(name for name in COLUMNS if name in fetched)
