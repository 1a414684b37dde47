"""What a run would find kept, and what it would ask, told before anything is asked.

The plan goes the way of the run: it reads the samples, makes every stage's key, and runs the stages whose tables are
not kept with a judge that only counts. So it can not count otherwise than the run asks. Where an answer that is not
there decides what is asked next, it says so.
"""

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

from flows.config.run_config import RunConfig, tables_root
from flows.dry_run.dry_run_result import Certainty, DryRun, PendingContexts, StageDryRun, least_certain
from flows.execution.plan import Plan
from flows.execution.stage_settings import (
    STAGE_TASKS,
    reads_every_context,
    retrieval_settings,
    samples_settings,
    stage_settings,
    use_fetched_contexts,
)
from metric_core.errors import AssayError, ConfigError
from metric_core.schemas import SCHEMAS
from metric_core.stages import Product, Stage
from tasks.dry_run.counting_judge import CountingJudge, Ledger, Tally
from tasks.dry_run.shard_preview import ShardPreview
from tasks.models.models import replace_judges
from tasks.options.judged_settings import JudgedSettings
from tasks.options.settings import Settings
from tasks.prefect_support.stage_results import StageResults
from tasks.stages.base import StageTask
from tasks.stages.fingerprint import settings_fingerprint
from tasks.stages.retrieval import UnfetchedContexts, fetch_contexts, find_fetched_contexts
from tasks.stages.samples import SamplesResult, read_shards
from tasks.tables.table_store import TableStore


def make_dry_run(config: RunConfig, plan: Plan, *, fetch: bool = False) -> DryRun:
    """What the run of a plan would do. Nothing is asked, but what the judge's server can do.

    Where contexts come from a retriever, the plan is made with those that were fetched last for the same questions.
    A run fetches them anew, so that its numbers are estimates; where none are kept, there are no numbers.

    Args:
        config: the configuration of the run.
        plan: its plan.
        fetch: have the contexts fetched now.

    Raises:
        ConfigError: contexts are to be fetched, and there is no retriever.
        SourceError: the data can not be read, or have bad rows.
        AssayError: the contexts can not be fetched.
    """
    if config.retriever is None:
        if fetch:
            raise ConfigError("there are no contexts to fetch: the configuration has no retriever; leave --fetch out")
        return _DryRun(config, plan).forecast(read_shards(samples_settings(config, plan), tables_root(config)))
    settings, root = retrieval_settings(config, config.retriever), tables_root(config)
    found = fetch_contexts(settings, root) if fetch else find_fetched_contexts(settings, root)
    if isinstance(found, UnfetchedContexts):
        return _without_contexts(config, plan, found)
    config = use_fetched_contexts(config, found.source)
    read = found.added_to(read_shards(samples_settings(config, plan), root))
    forecast = _DryRun(config, plan).forecast(read)
    for stage in forecast.stages:
        stage.certainty = least_certain((stage.certainty, Certainty.ESTIMATED))
    return replace(forecast, contexts=PendingContexts(found.index, forecast.rows, found.fetched))


def _without_contexts(config: RunConfig, plan: Plan, awaited: UnfetchedContexts) -> DryRun:
    shards = -(-awaited.rows // config.rows_a_shard())
    settings = stage_settings(config, plan)
    stages = tuple(
        StageDryRun(stage, isinstance(settings[stage], JudgedSettings), unknown=shards, certainty=Certainty.AT_LEAST)
        for stage in cached_stages(plan)
    )
    contexts = PendingContexts(awaited.index, awaited.rows, None)
    return DryRun(awaited.rows, awaited.bad_row_count, shards, stages, (), contexts)


def cached_stages(plan: Plan) -> list[Stage]:
    """The stages of a plan whose tables are kept: scores are computed by every run, and cost nothing."""
    return [stage for stage in plan.stages if stage in STAGE_TASKS and stage is not Stage.AGGREGATION]


class _DryRun:
    def __init__(self, config: RunConfig, plan: Plan) -> None:
        self._config = config
        self._plan = plan
        self._root = tables_root(config)
        self._settings = stage_settings(config, plan)
        self._problems: list[str] = []
        self._ledger = Ledger()
        self._identities = {stage: self._identity(self._settings[stage]) for stage in cached_stages(plan)}

    def forecast(self, samples: SamplesResult) -> DryRun:
        stages = {
            stage: StageDryRun(stage, isinstance(self._settings[stage], JudgedSettings)) for stage in self._identities
        }
        for ref in samples.refs:
            shard = ShardPreview({Stage.SAMPLES: ref})
            for stage, found in stages.items():
                self._look(stage, shard, found)
        rows = sum(ref.rows for ref in samples.refs)
        problems = tuple(Counter(self._problems))
        return DryRun(rows, samples.bad_row_count, len(samples.refs), tuple(stages.values()), problems)

    def _identity(self, settings: Settings) -> str | None:
        if isinstance(settings, JudgedSettings) and settings.judge.launch is not None:
            self._problems.append("the judge is launched by the run, so what is kept of its answers is unknown")
            self._ledger.offline = True
            return None
        if isinstance(settings, JudgedSettings) and self._ledger.offline:
            return None
        try:
            return settings_fingerprint(settings)
        except AssayError as error:
            self._problems.append(str(error))
            self._ledger.offline = self._ledger.offline or isinstance(settings, JudgedSettings)
            return None

    def _look(self, stage: Stage, shard: ShardPreview, found: StageDryRun) -> None:
        task, identity = STAGE_TASKS[stage], self._identities[stage]
        before = shard.refs_of(self._plan.before(stage))
        kept = None
        if before is not None and identity is not None and stage not in self._config.refresh:
            kept = StageResults(root=self._root).find(task.key(before, identity))
        if kept is not None:
            found.kept += 1
            shard.refs[stage] = kept
            return
        if stage not in self._config.refresh and (before is None or identity is None):
            found.unknown += 1
        else:
            found.missing += 1
        if found.judged:
            self._count(task, shard, found)

    def _count(self, task: StageTask[Any], shard: ShardPreview, found: StageDryRun) -> None:
        """Runs the stage with a judge that counts; what it gives is the table itself if nothing had to be asked."""
        stage, before = found.stage, self._plan.before(found.stage)
        with replace_judges(partial(CountingJudge, self._ledger)):
            output = task.compute(shard.tables_of(before), self._settings[stage])
        tally = self._ledger.taken()
        found.tally += tally
        is_certain = shard.refs_of(before) is not None and self._identities[stage] is not None
        found.certainty = least_certain((found.certainty, self._certainty(stage, is_certain, tally)))
        if is_certain and not tally.asked and not tally.waiting:
            shard.refs[stage] = TableStore(self._root).write(output.table, SCHEMAS[stage])
        else:
            shard.likenesses[stage] = output.table

    def _certainty(self, stage: Stage, is_certain: bool, tally: Tally) -> Certainty:
        if stage is Stage.EXPLANATIONS and not is_certain:
            return Certainty.AT_LEAST
        is_each = Product.CLAIMS_BY_EACH_CONTEXT in self._plan.products
        asks_by_answers = is_each and not reads_every_context(self._config, self._plan)
        if stage is Stage.VERDICTS and asks_by_answers and (tally.asked or tally.waiting):
            return Certainty.AT_LEAST
        return Certainty.EXACT if is_certain else Certainty.ESTIMATED
