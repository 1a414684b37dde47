"""Count the cached tables and the judge questions of a run, without asking them.

A dry run takes the same steps as the run: it reads the samples, computes every stage's key, and runs the stages whose
tables are not cached with a judge that only counts. So its counts are exact, except where a missing answer
decides what is asked next; there it says so. Rows that the run would take from the tables of an earlier run are not
looked up one by one: the run asks nothing about them.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from flows.config.launched_judges import launches
from flows.dry_run.changed_rows import find_changed_rows
from flows.dry_run.dry_run_result import Certainty, DryRun, PendingContexts, StageDryRun, least_certain
from flows.execution.anchor_repeats import LABELLED, EarlierNights, expect_rows, is_asked_again
from flows.execution.source_settings import retrieval_settings, samples_settings
from flows.monitoring.watched import subject_name
from flows.planning.anchor import AnchorPlan, plan_anchor
from flows.planning.run_plan import RunPlan, planned_kinds
from flows.planning.settings import sides_by_every_context
from metric_core.errors import AssayError, ConfigError
from metric_core.evidence import BY_EACH_CONTEXT
from metric_core.schemas import SCHEMAS
from metric_core.stages import Product, Stage
from tasks.dry_run.counting_judge import Ledger, Tally
from tasks.dry_run.dry_run_models import DryRunModels
from tasks.dry_run.shard_preview import ShardPreview
from tasks.judges.protocol import JudgeIdentity
from tasks.judges.routed_judge import roles_of
from tasks.models.run_models import RunModels
from tasks.options.judge_options import SingleJudgeSettings
from tasks.options.judged_settings import JudgedSettings
from tasks.options.narrow import narrow
from tasks.stages.registry import STAGES
from tasks.stages.retrieval import UnfetchedContexts, fetch_contexts, find_fetched_contexts
from tasks.stages.samples import SamplesResult, read_shards
from tasks.stages.stage_task import STAGE_TASKS, TableStorage
from tasks.tables.kept_tables import KeptTables
from tasks.tables.merge import sort_rows
from tasks.tables.table_store import StageRef, TableStore


def make_dry_run(plan: RunPlan, *, fetch: bool = False) -> DryRun:
    """Return what the run of a plan would reuse and ask. A judge server is asked for its features, and nothing else.

    Contexts from a retriever are those that were fetched last for the same user questions. A run refetches them, so the
    numbers are estimates; without fetched contexts there are no numbers.

    Args:
        plan: Plan of the run.
        fetch: True to refetch the contexts for the dry run.

    Raises:
        ConfigError: `fetch` is set, and there is no retriever.
        SourceError: The data cannot be read, or has bad rows.
        AssayError: The contexts cannot be fetched.
    """
    dry_run = _preview_rows(plan, fetch=fetch)
    anchor = plan_anchor(plan)
    if anchor is None:
        return dry_run
    of_anchor = _preview_rows(anchor.run, fetch=False)
    again = None
    if is_asked_again(anchor):
        options = plan.monitoring
        nights = EarlierNights(options.history, frozenset({subject_name(options.name, options.source)}))
        again = _preview_again(anchor, expect_rows(anchor, of_anchor.rows, nights))
    parts = [dry_run, of_anchor, *([] if again is None else [again])]
    accounts = {account: Tally() for part in parts for account in part.accounts}
    for part in parts:
        accounts |= {account: accounts[account] + tally for account, tally in part.accounts.items()}
    return replace(dry_run, anchor=of_anchor, again=again, accounts=accounts)


def _preview_again(anchor: AnchorPlan, rows: int) -> DryRun:
    """Return the dry run of anchor rows that are asked about again: the first ones stand for those whose turn it is."""
    stages = [stage for stage in anchor.run.metrics.stages if stage in LABELLED]
    plan = anchor.run.with_options(limit=rows).with_metrics(anchor.run.metrics, stages)
    runner = _DryRunner(plan, counted=stages)
    found = runner.run(read_shards(samples_settings(plan), plan.storage.tables_root))
    for stage in found.stages:
        stage.certainty = least_certain((stage.certainty, Certainty.ESTIMATED))
    return replace(found, stages=tuple(stage for stage in found.stages if stage.stage in stages))


def _preview_rows(plan: RunPlan, *, fetch: bool) -> DryRun:
    """Return the dry run of the rows of a source, without the anchor."""
    root = plan.storage.tables_root
    if plan.source.retriever is None:
        if fetch:
            raise ConfigError("there are no contexts to fetch: the configuration has no retriever; leave --fetch out")
        return _DryRunner(plan).run(read_shards(samples_settings(plan), root))
    settings = retrieval_settings(plan)
    contexts = fetch_contexts(settings, root) if fetch else find_fetched_contexts(settings, root)
    if isinstance(contexts, UnfetchedContexts):
        return _without_contexts(plan, contexts)
    plan = plan.with_fetched_contexts(contexts.source)
    read = contexts.add_to(read_shards(samples_settings(plan), root))
    dry_run = _DryRunner(plan).run(read)
    for stage in dry_run.stages:
        stage.certainty = least_certain((stage.certainty, Certainty.ESTIMATED))
    return replace(dry_run, contexts=PendingContexts(contexts.index, dry_run.rows, contexts.fetched))


def _without_contexts(plan: RunPlan, unfetched: UnfetchedContexts) -> DryRun:
    shards = -(-unfetched.rows // plan.storage.rows_a_shard)
    stages = tuple(
        StageDryRun(stage, bool(STAGES[stage].asks), unknown=shards, certainty=Certainty.AT_LEAST)
        for stage in plan.metrics.cached_stages
    )
    contexts = PendingContexts(unfetched.index, unfetched.rows, None)
    return DryRun(unfetched.rows, unfetched.bad_row_count, shards, stages, (), contexts)


class _DryRunner:
    """Counts what a run would do.

    Args:
        plan: Plan of the run.
        counted: Stages whose questions count; None for all.
    """

    def __init__(self, plan: RunPlan, counted: Collection[Stage] | None = None) -> None:
        self._counted = counted
        self._plan = plan
        self._root = plan.storage.tables_root
        self._kept = KeptTables(self._root)
        self._settings = plan.stages
        self._problems: list[str] = []
        self._ledger = Ledger()
        self._models = RunModels()
        self._counting = DryRunModels(self._ledger, self._models)
        self._identities = {stage: self._identity(stage) for stage in plan.metrics.cached_stages}

    def run(self, samples: SamplesResult) -> DryRun:
        stages = {stage: StageDryRun(stage, bool(STAGES[stage].asks)) for stage in self._identities}
        kept = [self._find_all(ref) for ref in samples.refs]
        changed = find_changed_rows(self._plan, self._recipes(), kept)
        for number, refs in enumerate(kept):
            if number in changed.merged:
                for stage, counts in stages.items():
                    counts.kept += stage in refs
                    counts.missing += stage not in refs
            else:
                self._preview_shard(refs, stages)
        packed = {stage: StageDryRun(stage, counts.judged) for stage, counts in stages.items()}
        for ref in changed.packed:
            self._preview_shard({Stage.SAMPLES: ref}, packed)
        for stage, counts in packed.items():
            stages[stage].add_questions(counts)
        rows = sum(ref.rows for ref in samples.refs)
        problems = (*samples.warnings, *Counter(self._problems))
        judges = self._judges({kind for stage in stages.values() for kind in stage.kinds})
        counted = tuple(stages.values())
        judge = self._judge(counted)
        shards = len(samples.refs)
        accounts = dict(self._ledger.accounts)
        return DryRun(
            rows, samples.bad_row_count, shards, counted, problems, judges=judges, judge=judge, accounts=accounts
        )

    def _judges(self, counted: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Return the name of each judge with the kinds of counted questions that would go to it."""
        kinds = [kind for kind in planned_kinds(self._plan.metrics) if kind in counted]
        if not kinds:
            return {}
        judge = self._counting.open_judges(self._plan.judged)
        return {role.name: tuple(map(str, role.kinds)) for role in roles_of(judge, kinds)}

    def _judge(self, stages: Sequence[StageDryRun]) -> JudgeIdentity | None:
        if self._ledger.offline or not any(stage.tally.requests for stage in stages):
            return None
        try:
            return self._models.select(self._plan.judged).judge().identity
        except AssayError:
            return None

    def _identity(self, stage: Stage) -> str | None:
        settings = self._settings[stage]
        if isinstance(settings, JudgedSettings) and launches(self._plan.models):
            launched = " and ".join(f"judge of {group}" if group else "judge" for group in launches(self._plan.models))
            self._problems.append(
                f"the {launched} will be launched by the run, so it is unknown which answers are cached: all its "
                "questions count as to be asked"
            )
            self._ledger.offline = True
            return None
        if isinstance(settings, JudgedSettings) and self._ledger.offline:
            return None
        try:
            return STAGE_TASKS[stage].fingerprint(settings, self._models)
        except AssayError as error:
            self._problems.append(str(error))
            if isinstance(settings, JudgedSettings):
                self._ledger.offline = True
                if len(settings.judges) == 1:
                    self._ledger.unreachable.add(narrow(settings.judge, SingleJudgeSettings).model_dump_json())
            return None

    def _recipes(self) -> dict[Stage, str]:
        """Return what determines the tables of each stage, beside its input tables, as far as it is known."""
        identities = ((stage, identity) for stage, identity in self._identities.items() if identity is not None)
        recipes = {
            stage: STAGE_TASKS[stage].recipe(self._plan.metrics.inputs_of(stage), TableStorage(self._root, identity))
            for stage, identity in identities
        }
        return {stage: recipe for stage, recipe in recipes.items() if recipe is not None}

    def _find_all(self, samples: StageRef) -> dict[Stage, StageRef]:
        """Return the tables of a shard that are kept, including its samples."""
        tables = {Stage.SAMPLES: samples}
        for stage in self._identities:
            inputs = [tables.get(earlier) for earlier in self._plan.metrics.inputs_of(stage)]
            if (ref := self._find(stage, inputs)) is not None:
                tables[stage] = ref
        return tables

    def _find(self, stage: Stage, inputs: Sequence[StageRef | None]) -> StageRef | None:
        known = [ref for ref in inputs if ref is not None]
        identity = self._identities[stage]
        if len(known) < len(inputs) or identity is None or stage in self._plan.storage.refresh:
            return None
        return self._kept.find(STAGE_TASKS[stage].key(known, identity))

    def _preview_shard(self, tables: Mapping[Stage, StageRef], stages: Mapping[Stage, StageDryRun]) -> None:
        shard = ShardPreview(dict(tables))
        for stage, counts in stages.items():
            self._preview(stage, shard, counts)

    def _preview(self, stage: Stage, shard: ShardPreview, counts: StageDryRun) -> None:
        identity = self._identities[stage]
        inputs = shard.refs_of(self._plan.metrics.inputs_of(stage))
        cached = shard.refs.get(stage) or (None if inputs is None else self._find(stage, inputs))
        if cached is not None:
            counts.kept += 1
            shard.refs[stage] = cached
            return
        if stage not in self._plan.storage.refresh and (inputs is None or identity is None):
            counts.unknown += 1
        else:
            counts.missing += 1
        if counts.judged:
            self._count(shard, counts)

    def _count(self, shard: ShardPreview, counts: StageDryRun) -> None:
        """Run the stage with a judge that counts; its output is the table itself if nothing had to be asked."""
        stage, inputs = counts.stage, self._plan.metrics.inputs_of(counts.stage)
        settings = self._settings[stage]
        accounts = dict(self._ledger.accounts)
        output = STAGES[stage].compute(shard.tables_of(inputs), settings, self._counting.select(settings))
        tallies = self._ledger.take()
        if self._counted is not None and stage not in self._counted:
            self._ledger.accounts = accounts
        tally = sum(tallies.values(), Tally())
        counts.tally += tally
        for kind, of_kind in tallies.items():
            counts.kinds[kind] = counts.kinds.get(kind, Tally()) + of_kind
        is_certain = shard.refs_of(inputs) is not None and self._identities[stage] is not None
        counts.certainty = least_certain((counts.certainty, self._certainty(stage, is_certain, tally)))
        if is_certain and not tally.asked and not tally.waiting:
            samples = shard.tables_of((Stage.SAMPLES,))[Stage.SAMPLES]
            table = sort_rows(output.table, samples["row_id"].combine_chunks())
            shard.refs[stage] = TableStore(self._root).write(table, SCHEMAS[stage])
        else:
            shard.previews[stage] = output.table

    def _certainty(self, stage: Stage, is_certain: bool, tally: Tally) -> Certainty:
        if stage is Stage.EXPLANATIONS and not is_certain:
            return Certainty.AT_LEAST
        is_each = Product.CLAIMS_BY_EACH_CONTEXT in self._plan.metrics.products
        asks_by_answers = is_each and len(sides_by_every_context(self._plan.metrics)) < len(BY_EACH_CONTEXT)
        asks_by_answers = asks_by_answers or any(request.metric.follows_up for request in self._plan.metrics.requests)
        if stage is Stage.VERDICTS and asks_by_answers and (tally.asked or tally.waiting):
            return Certainty.AT_LEAST
        return Certainty.EXACT if is_certain else Certainty.ESTIMATED
