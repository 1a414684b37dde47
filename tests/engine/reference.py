"""Compute the tables of a run in the plainest way: row by row with the functions of the stages.

No store, no cache, no shard, no window and no flow is involved, so whatever an engine reuses or splits, its tables must
be equal to these.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from metric_core.declarations.metric import MetricRequest
from metric_core.prompts.judge_questions import JudgeQuestion, question_digest
from metric_core.schemas import SCHEMAS
from metric_core.stages import PRODUCTS, Product, Stage, closure
from tasks.engine.registry import STAGES
from tasks.models.judges.protocol import Judge
from tasks.opening.backends import load_embedder
from tasks.opening.local_models import load_pipeline
from tasks.options.evaluation_options import EvaluationOptions
from tasks.options.metric_settings import MetricSettings
from tasks.options.narrow import narrow
from tasks.options.settings import Settings
from tasks.rows.stage_rows import StageRows
from tasks.rows.table_store import conform, content_digest
from tests.tasks.builders import GivenModels

_PRODUCT_OF_METRICS = {
    Stage.VERDICTS: Product.REQUESTED_VERDICTS,
    Stage.RATINGS: Product.RATINGS,
    Stage.EXPLANATIONS: Product.RATINGS,
}
"""Product whose metrics a stage gets; other stages get all metrics, if they get any."""

Tables = dict[Stage, pa.Table]


@dataclass(frozen=True)
class Reference:
    """The tables that a run of some options must have.

    Args:
        options: Options of the evaluation; they name metrics, and `explain` is set.
        judge: Judge that the run asks, without a cache.
    """

    options: EvaluationOptions
    judge: Judge

    def tables(self, samples: pa.Table) -> Tables:
        """Return the tables of all stages, with the samples, in the order of the samples."""
        rows = [self.tables_of_row(samples.slice(number, 1)) for number in range(samples.num_rows)]
        return {stage: pa.concat_tables([tables[stage] for tables in rows]) for stage in rows[0]}

    def tables_of_row(self, sample: pa.Table) -> Tables:
        """Return the tables of one row, with its sample."""
        tables: Tables = {Stage.SAMPLES: sample}
        models = GivenModels(
            given_judge=self.judge,
            given_embedder=load_embedder(self.options.embedder),
            given_recognizer=load_pipeline(self.options.language),
            given_pipeline=load_pipeline(self.options.language),
        )
        settings = stage_settings(self.options)
        for stage in TopologicalSorter({stage: each.reads for stage, each in STAGES.items()}).static_order():
            if stage in settings:
                read = {earlier: tables[earlier] for earlier in STAGES[stage].reads if earlier in tables}
                tables[stage] = STAGES[stage].compute(read, settings[stage], models).table
        return tables

    def questions(self, sample: pa.Table) -> frozenset[str]:
        """Return the digests of the questions about one row."""
        noting = NotingJudge(self.judge)
        Reference(self.options, noting).tables_of_row(sample)
        return frozenset(map(question_digest, noting.asked))


class NotingJudge:
    """A judge that notes the questions.

    Args:
        judge: Judge that answers them.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.asked: list[JudgeQuestion] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._judge, name)

    def choose(self, questions: Sequence[JudgeQuestion], *more: Any) -> Any:
        return self._note(self._judge.choose, questions, more)

    def generate(self, questions: Sequence[JudgeQuestion], *more: Any) -> Any:
        return self._note(self._judge.generate, questions, more)

    def _note(self, ask: Callable[..., Any], questions: Sequence[JudgeQuestion], more: Sequence[Any]) -> Any:
        self.asked += questions
        return ask(questions, *more)


def stage_settings(options: EvaluationOptions) -> dict[Stage, Settings]:
    """Return the settings of the stages that the metrics need, from the declarations of metrics and products alone."""
    requests = options.requests() or []
    products = closure(product for request in requests for product in request.products) | {Product.FOLLOW_UPS}
    counts = [dict(request.parameters).get("strictness", 3) for request in requests if _asks_questions(request)]
    is_each = options.verdict_kind == "probability" and Product.CLAIMS_BY_EACH_CONTEXT in products
    whole = {Product.RESPONSE_CLAIMS_BY_EACH_CONTEXT, Product.REFERENCE_CLAIMS_BY_EACH_CONTEXT} if is_each else set()
    requesting = products | whole
    settings: dict[Stage, Settings] = {}
    for stage, definition in STAGES.items():
        mine = tuple(product for product in Product if product in requesting and PRODUCTS[product].stage is stage)
        if not (mine or definition.always or stage is Stage.EXPLANATIONS):
            continue
        wanted = _PRODUCT_OF_METRICS.get(stage)
        decided: Mapping[str, Any] = {
            "products": mine,
            "metrics": tuple(
                MetricSettings.from_request(request)
                for request in requests
                if wanted is None or wanted in request.products
            ),
            "verdict": options.verdict_kind,
            "count": max(counts, default=0),
            "explained": options.explain,
            "planned": tuple(sorted(products)),
            "refresh": False,
        }
        fields = definition.settings.model_fields
        given = {name: value for name, value in decided.items() if name in fields}
        settings[stage] = narrow(options, definition.settings, **given)
    return settings


def normalize(stage: Stage, table: pa.Table) -> pa.Table:
    """Return a table as a run folder has it: with the schema of its stage, read from a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(conform(table, SCHEMAS[stage]), sink)
    return pq.read_table(pa.BufferReader(sink.getvalue()))


def digest(stage: Stage, table: pa.Table, ids: Sequence[str]) -> str:
    """Return the digest that run.json gives for a shard: of samples by their table, of other stages row by row."""
    if stage is Stage.SAMPLES:
        return content_digest(normalize(stage, table))
    rows = StageRows.from_table(stage, table, pa.array(ids))
    return hashlib.sha256(rows.digests.tobytes()).hexdigest()[:32]


def _asks_questions(request: MetricRequest) -> bool:
    return Product.QUESTIONS in closure(request.products)
