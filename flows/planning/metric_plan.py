"""Plan the metrics of a run: which products they need, and which stages compute them with which settings.

A product that several metrics need is in the plan once.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from metric_core.columns import (
    COLUMNS,
    CONVERSATION,
    EARLIER_TURNS,
    REFERENCE,
    REFERENCE_CONTEXT_IDS,
    REFERENCE_CONTEXTS,
    RUBRICS,
    SESSION_ID,
    USER_INPUT,
)
from metric_core.declarations.metric import MetricRequest
from metric_core.declarations.own_products import check_shared_products
from metric_core.errors import SourceError
from metric_core.metrics.registry import default_suite
from metric_core.prompts.judge_questions import Kind
from metric_core.question_kinds import FOR_KEY_POINTS, RATING_KINDS
from metric_core.stages import PRODUCTS, Product, Stage, any_judged, closure
from tasks.engine.registry import LEVELS, STAGES
from tasks.options.conversation_options import FollowUpOptions
from tasks.options.evaluation_options import EvaluationOptions
from tasks.options.metric_options import MetricOptions, VerdictKind
from tasks.options.metric_settings import MetricSettings
from tasks.options.narrow import narrow
from tasks.options.settings import Settings

DEFAULT_QUESTIONS = 3
"""Regenerated questions per response, for a metric that does not say how many."""

ON_CLAIMS = frozenset(
    product
    for product, spec in PRODUCTS.items()
    if product is Product.REQUESTED_VERDICTS
    or (spec.stage is Stage.VERDICTS and spec.requires and product is not Product.SENTENCE_RELEVANCE)
)
"""The products that are verdicts on claims, which can be explained."""
WHOLE_SIDES = frozenset({Product.RESPONSE_CLAIMS_BY_EACH_CONTEXT, Product.REFERENCE_CLAIMS_BY_EACH_CONTEXT})
"""The products that are verdicts on all claims of a side by each context."""
_OF_CONVERSATION = frozenset({CONVERSATION, SESSION_ID, REFERENCE, REFERENCE_CONTEXTS, REFERENCE_CONTEXT_IDS, RUBRICS})
"""Columns that the row of a whole conversation can have."""
_RATINGS = frozenset({Product.RATINGS})


@dataclass(frozen=True, slots=True)
class MetricPlan:
    """The metrics, products and stages of a run.

    Args:
        requests: Metrics, in the order of the tables.
        products: Every product that the metrics need, directly or through another product.
        left_out: Metric -> the columns that the data lacks for it, none if the judge cannot rate; empty if the
            configuration names metrics.
        stood_in: Columns that a row can lack, because other columns of the data can replace them.
        verdict: Value of a verdict in a metric.
    """

    requests: tuple[MetricRequest, ...]
    products: frozenset[Product]
    left_out: Mapping[str, tuple[str, ...]]
    explain: Literal["none", "unsupported", "ratings", "all"] = "none"
    stood_in: frozenset[str] = frozenset()
    verdict: VerdictKind = "binary"
    options: MetricOptions = field(default_factory=MetricOptions)

    def __post_init__(self) -> None:
        check_shared_products(
            (request.metric.origin or request.metric.name, product)
            for request in self.requests
            for product in request.metric.own_products
        )

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages that have something to do, in the order of their levels."""
        busy = {PRODUCTS[product].stage for product in self.products}
        explained = {"none": frozenset(), "unsupported": ON_CLAIMS, "ratings": _RATINGS, "all": ON_CLAIMS | _RATINGS}
        if self.products & explained[self.explain]:
            busy.add(Stage.EXPLANATIONS)
        always = {stage for level in LEVELS for stage in level if stage not in STAGES or STAGES[stage].always}
        return tuple(stage for level in LEVELS for stage in level if stage in busy | always)

    @property
    def sharded_stages(self) -> tuple[Stage, ...]:
        """The stages of the plan that work shard by shard, in the order of their levels."""
        return tuple(stage for stage in self.stages if stage in STAGES)

    @property
    def cached_stages(self) -> tuple[Stage, ...]:
        """The stages of the plan whose tables are cached, in the order of their levels."""
        return tuple(stage for stage in self.sharded_stages if STAGES[stage].cached)

    def products_of(self, stage: Stage) -> tuple[Product, ...]:
        """Return the products that a stage computes, in the order of their declaration."""
        return tuple(product for product in Product if product in self.products and PRODUCTS[product].stage is stage)

    def inputs_of(self, stage: Stage) -> tuple[Stage, ...]:
        """Return the planned stages whose tables a stage reads."""
        return tuple(earlier for earlier in STAGES[stage].reads if earlier in self.stages)

    def users_of(self, product: Product) -> tuple[str, ...]:
        """Return the keys of the metrics that need a product, directly or through another product."""
        return tuple(request.key for request in self.requests if product in closure(request.products))

    @property
    def kinds(self) -> list[Kind]:
        """The kinds of questions that the run may ask; if there are none, it needs no judge."""
        # Settings decide what these two ask; the others open their judge even if their products need no question.
        others = set(self.sharded_stages) - {Stage.VERDICTS, Stage.RATINGS}
        asked: set[Kind] = {kind for product in self.products if (kind := PRODUCTS[product].asks) is not None}
        asked.update(kind for stage in others for kind in STAGES[stage].asks)
        if Product.KEY_POINTS not in self.products:
            asked.difference_update(FOR_KEY_POINTS)
        rated = [request.metric for request in self.requests if Product.RATINGS in request.products]
        asked.update(kind for metric in rated for kind in metric.question_kinds)
        if any(metric.origin for metric in rated):
            asked.update(RATING_KINDS)  # a user-defined metric need not declare them
        return sorted(asked)

    @property
    def question_count(self) -> int:
        """Regenerated questions per response: the largest number that a metric needs."""
        counts = [
            dict(request.parameters).get("strictness", DEFAULT_QUESTIONS)
            for request in self.requests
            if Product.QUESTIONS in closure(request.products)
        ]
        return max(counts, default=0)

    @property
    def required(self) -> dict[str, tuple[str, ...]]:
        """The columns of the source that each metric needs, by metric."""
        return {
            request.key: tuple(column for column in request.columns if column not in self.stood_in)
            if request.metric.stand_ins
            else request.columns
            for request in self.requests
        }

    @property
    def metric_settings(self) -> tuple[MetricSettings, ...]:
        """The metrics as settings."""
        return tuple(MetricSettings.from_request(request) for request in self.requests)

    @property
    def products_by_every_context(self) -> frozenset[Product]:
        """The products whose verdicts are those on all claims of a side by each context, read or not.

        With probabilities, noise sensitivity reads all verdicts on both sides, and only a user-defined metric itself
        knows what it reads of the product for both.
        """
        both = Product.CLAIMS_BY_EACH_CONTEXT
        is_whole = any(both in request.products for request in self.requests if request.metric.origin)
        is_whole = is_whole or (both in self.products and self.verdict == "probability")
        return WHOLE_SIDES if is_whole else WHOLE_SIDES & self.products

    def stage_settings(self, options: EvaluationOptions, refresh: Collection[Stage] = ()) -> dict[Stage, Settings]:
        """Return the settings of every stage that works shard by shard.

        A stage receives the fields of its settings class: from the metrics if these decide them, else from the options.

        Args:
            refresh: Stages that ask the judge again.
        """
        return {
            stage: narrow(options, definition.settings, **self._decided(stage, refresh))
            for stage, definition in STAGES.items()
        }

    def settings_instead(
        self, settings: Mapping[Stage, Settings], refresh: Collection[Stage] = ()
    ) -> dict[Stage, Settings]:
        """Return the settings of the stages for these metrics instead of others, with the same models.

        Args:
            settings: Settings of all stages for the other metrics.
            refresh: Stages that ask the judge again.
        """
        return {stage: each.model_copy(update=self._decided(stage, refresh)) for stage, each in settings.items()}

    def _decided(self, stage: Stage, refresh: Collection[Stage]) -> dict[str, Any]:
        """Return the fields of the settings of a stage that the metrics decide."""
        products = self.products_of(stage)
        if stage is Stage.VERDICTS:
            requesting = self.products_by_every_context.union(products)
            products = tuple(product for product in Product if product in requesting)
        decided = {
            "products": products,
            "metrics": self._metrics_of(stage),
            "verdict": self.verdict,
            "count": self.question_count,
            "explained": "unsupported" if self.explain == "none" else self.explain,
            "planned": tuple(sorted(self.products)),
            "refresh": stage in refresh,
        }
        fields: Collection[str] = STAGES[stage].settings.model_fields
        return {name: value for name, value in decided.items() if name in fields}

    def _metrics_of(self, stage: Stage) -> tuple[MetricSettings, ...]:
        """Return the metrics that a stage computes or asks for: those that read a product of it, or have a class."""
        if stage is Stage.DIAGNOSIS:
            with_class = (request for request in self.requests if request.metric.diagnosis is not None)
            return tuple(map(MetricSettings.from_request, with_class))
        products = {product for product, spec in PRODUCTS.items() if spec.stage is stage}
        if stage is Stage.EXPLANATIONS:
            products = {Product.RATINGS}
        if stage is Stage.VERDICTS:  # products request the same verdicts whichever metrics read them
            products = {Product.REQUESTED_VERDICTS}
        return tuple(
            MetricSettings.from_request(request)
            for request in self.requests
            if not products or products & set(request.products)
        )

    def for_columns(self, columns: Collection[str]) -> "MetricPlan":
        """Return the plan for other rows: the metrics that their columns allow, without explanations.

        Args:
            columns: Sample columns that the rows have.
        """
        lacking = {each.key: each.lacking(columns) for each in self.requests}
        requests = tuple(each for each in self.requests if not lacking[each.key])
        return replace(
            self,
            requests=requests,
            products=required_products(self.options, requests, columns),
            left_out={key: missing for key, missing in lacking.items() if missing},
            explain="none",
            stood_in=frozenset(),
        )


def make_plan(options: EvaluationOptions, available: Sequence[str]) -> MetricPlan:
    """Return the plan for the metrics that are named, or else for all that the data and the judge allow.

    Args:
        available: Columns that the data has: those of samples, and others.

    Raises:
        ConfigError: A metric or parameter is unknown.
        SourceError: No metric is named, and the data lacks columns for each.
    """
    requested = options.requests()
    requests = default_suite(available, options.can_rate) if requested is None else requested
    if not requests:
        known = ", ".join(name for name in available if name in COLUMNS)
        columns = f"the sample columns {known}" if known else "no sample columns"
        raise SourceError(
            f"no metric can work on the data, which has {columns}. "
            "`assay metrics` lists the columns that each needs; column_map gives your columns those names."
        )
    left_out = {}
    if requested is None:
        chosen = {request.key for request in requests}
        everything = default_suite(tuple(COLUMNS))
        left_out = {request.key: request.lacking(available) for request in everything if request.key not in chosen}
    stood_in = frozenset(
        column
        for request in requests
        for column, others in request.metric.stand_ins.items()
        if not set(others).isdisjoint(available)
    )
    return replace(plan_requests(options, requests, available), left_out=left_out, stood_in=stood_in)


def plan_requests(
    options: EvaluationOptions, requests: Iterable[MetricRequest], available: Collection[str]
) -> MetricPlan:
    """Return the plan for metrics.

    Args:
        available: Sample columns that the data has.
    """
    chosen = tuple(requests)
    return MetricPlan(
        requests=chosen,
        products=required_products(options, chosen, available),
        left_out={},
        explain=options.explain,
        verdict=options.verdict_kind,
        options=narrow(options, MetricOptions),
    )


def required_products(
    options: FollowUpOptions, requests: Iterable[MetricRequest], available: Collection[str]
) -> frozenset[Product]:
    """Return the products that metrics need, with self-contained questions if the judge is asked about turns.

    Args:
        available: Sample columns that the data has.
    """
    chosen = tuple(requests)
    products = closure(product for request in chosen for product in request.products)
    read_question = any(USER_INPUT in {*request.columns, *request.optional_columns} for request in chosen)
    follows = options.follow_ups == "rewrite" and EARLIER_TURNS in available and read_question
    return products | {Product.FOLLOW_UPS} if follows and any_judged(products) else products


def judges_conversations(request: MetricRequest) -> bool:
    """Return whether a metric can judge a conversation as one text: it reads one, and needs nothing of single turns."""
    needed = frozenset(request.columns)
    return CONVERSATION in needed.union(request.optional_columns) and needed <= _OF_CONVERSATION
