"""Count the stored results and the judge questions of a run, without asking them.

A dry run takes the same steps as the run: it reads the samples, looks up their rows, and computes the stages of the
others with a judge that only counts. So its counts are exact, except where a missing answer decides what is asked next;
there it says so.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from flows.dry_run.dry_run_result import Certainty, DryRun, PendingContexts, StageDryRun, least_certain
from flows.execution.read_source import retrieval_settings, samples_settings
from flows.planning.metric_plan import WHOLE_SIDES
from flows.planning.run_plan import RunPlan
from metric_core.errors import AssayError, ConfigError
from metric_core.stages import Product, Stage
from tasks.engine.computation import Window
from tasks.engine.lookup import Given, look_up, pack_shards
from tasks.engine.registry import STAGES
from tasks.engine.stage_step import EnginePlan, StageStep, make_recipe
from tasks.models.judges.protocol import JudgeIdentity
from tasks.models.judges.routed_judge import JudgeRole, members_of_role, roles_of
from tasks.opening.counting_judge import Ledger, Tally
from tasks.opening.dry_run_models import DryRunModels
from tasks.opening.run_models import RunModels
from tasks.options.judge_options import SingleJudgeSettings
from tasks.options.judged_settings import JudgedSettings
from tasks.options.narrow import narrow
from tasks.options.settings import Settings
from tasks.rows.places import Places
from tasks.rows.row_store import RowStore
from tasks.rows.shard import Shard
from tasks.rows.stage_rows import StageRows
from tasks.stages.retrieval import UnfetchedContexts, fetch_contexts, find_fetched_contexts
from tasks.stages.samples import SamplesResult, read_shards


def make_dry_run(plan: RunPlan, *, fetch: bool = False) -> DryRun:
    """Return what the run of a plan would reuse and ask for its rows.

    A judge server is asked for its features, and nothing else.

    Contexts from a retriever are those that were fetched last for the same user questions. A run refetches them, so the
    numbers are estimates; without fetched contexts there are no numbers.

    Args:
        fetch: True to refetch the contexts for the dry run.

    Raises:
        ConfigError: `fetch` is set, and there is no retriever.
        SourceError: The data cannot be read, or has bad rows.
        AssayError: The contexts cannot be fetched.
    """
    root = plan.storage.tables_root
    if plan.source.retriever is None:
        if fetch:
            raise ConfigError("there are no contexts to fetch: the configuration has no retriever; leave --fetch out")
        return DryRunner(plan).run(read_shards(samples_settings(plan), root))
    settings = retrieval_settings(plan)
    contexts = fetch_contexts(settings, root) if fetch else find_fetched_contexts(settings, root)
    if isinstance(contexts, UnfetchedContexts):
        return _without_contexts(plan, contexts)
    plan = plan.with_fetched_contexts(contexts.source)
    read = contexts.add_to(read_shards(samples_settings(plan), root))
    dry_run = DryRunner(plan).run(read)
    for stage in dry_run.stages:
        stage.certainty = least_certain((stage.certainty, Certainty.ESTIMATED))
    return replace(dry_run, contexts=PendingContexts(contexts.index, dry_run.rows, contexts.fetched))


def _without_contexts(plan: RunPlan, unfetched: UnfetchedContexts) -> DryRun:
    stages = tuple(
        StageDryRun(stage, bool(STAGES[stage].asks), unknown=unfetched.rows, certainty=Certainty.AT_LEAST)
        for stage in plan.metrics.cached_stages
    )
    contexts = PendingContexts(unfetched.index, unfetched.rows, None)
    return DryRun(unfetched.rows, unfetched.bad_row_count, stages, (), contexts)


class DryRunner:
    """Counts what a run would do.

    Args:
        counted: Stages whose questions count; None for all.
    """

    def __init__(self, plan: RunPlan, counted: Collection[Stage] | None = None) -> None:
        self._counted = counted
        self._plan = plan
        self._problems: list[str] = []
        self._ledger = Ledger()
        self._models = RunModels(plan.storage.tables_root, read_only=True)
        self._counting = DryRunModels(self._ledger, self._models)
        steps = {stage: self._step(stage) for stage in plan.metrics.cached_stages}
        storage = plan.storage
        self._engine = EnginePlan(steps, storage.tables_root, storage.rows_a_window, storage.rows_a_shard)
        self._store = RowStore(storage.tables_root, read_only=True)

    def run(self, samples: SamplesResult, given: Given | None = None) -> DryRun:
        """Return what a run over samples would reuse and ask.

        Args:
            given: Results that the run takes as they are.
        """
        stages = {stage: StageDryRun(stage, step.is_judged) for stage, step in self._engine.steps.items()}
        shards = look_up(self._engine, self._store, samples.refs, given)
        for shard in shards:
            for stage, places in shard.places.items():
                stages[stage].kept += int((~places.missing).sum())
        for shard in pack_shards(shards, self._engine.shard_rows, self._store.arrays):
            self._preview_shard(shard, stages)
        rows = sum(ref.rows for ref in samples.refs)
        problems = (*samples.warnings, *Counter(self._problems))
        roles = self._roles({kind for stage in stages.values() for kind in stage.kinds})
        counted = tuple(stages.values())
        judge = self._judge(counted)
        ledger = self._ledger
        return DryRun(
            rows,
            samples.bad_row_count,
            counted,
            problems,
            judges={role.name: tuple(map(str, role.kinds)) for role in roles},
            tallies={role.name: ledger.judges.get(getattr(role.judge, "name", ""), Tally()) for role in roles},
            spared=ledger.spared,
            judge=judge,
            accounts=dict(ledger.accounts),
        )

    def _roles(self, counted: Collection[str]) -> list[JudgeRole]:
        """Return each judge, also those of a panel or cascade, with the counted questions that would go to it."""
        kinds = [kind for kind in self._plan.metrics.kinds if kind in counted]
        judge = self._counting.open_judges(self._plan.judged) if kinds else None
        return [] if judge is None else [each for role in roles_of(judge, kinds) for each in members_of_role(role)]

    def _judge(self, stages: Sequence[StageDryRun]) -> JudgeIdentity | None:
        if self._ledger.offline or not any(stage.tally.requests for stage in stages):
            return None
        try:
            return self._models.select(self._plan.judged).judge().identity
        except AssayError:
            return None

    def _step(self, stage: Stage) -> StageStep:
        settings, reads = self._plan.stages[stage], self._plan.reads[stage]
        refresh = stage in self._plan.storage.refresh
        return StageStep(stage, settings, reads, self._recipe(stage, settings, reads), refresh)

    def _recipe(self, stage: Stage, settings: Settings, reads: Sequence[Stage]) -> str | None:
        """Return the recipe of a stage; None if a judge is unknown, so that none of its results can be found."""
        if isinstance(settings, JudgedSettings) and self._plan.models.launches:
            launched = " and ".join(f"judge of {group}" if group else "judge" for group in self._plan.models.launches)
            self._problems.append(
                f"the {launched} will be launched by the run, so it is unknown which answers are cached: all its "
                "questions count as to be asked"
            )
            self._ledger.offline = True
            return None
        if isinstance(settings, JudgedSettings) and self._ledger.offline:
            return None
        try:
            return make_recipe(stage, settings, self._models, reads)
        except AssayError as error:
            self._problems.append(str(error))
            if isinstance(settings, JudgedSettings):
                self._ledger.offline = True
                if len(settings.judges) == 1:
                    self._ledger.unreachable.add(narrow(settings.judge, SingleJudgeSettings).model_dump_json())
            return None

    def _preview_shard(self, shard: Shard, stages: Mapping[Stage, StageDryRun]) -> None:
        """Compute the judged stages of some rows window by window, as the run does; of other stages, count the rows."""
        samples, size = shard.read_samples(), self._engine.window_rows
        judged = [stage for stage, step in self._engine.steps.items() if step.is_judged]
        for stage in shard.missing:
            if stage not in judged:
                self._count_rows(stages[stage], shard.places)
        for start in range(0, len(shard), size):
            end = min(start + size, len(shard))
            preview = _Preview({Stage.SAMPLES: samples.cut(start, end)})
            for stage in judged:
                window = Window(self._engine.steps[stage], shard.places[stage].cut(start, end))
                self._preview(stages[stage], window, preview)

    def _count_rows(self, counts: StageDryRun, known: Mapping[Stage, Places]) -> None:
        """Count the rows that a stage without a judge computes, and those for which only the run itself decides."""
        step = self._engine.steps[counts.stage]
        is_missing = known[counts.stage].missing
        is_open = is_missing & (step.recipe is None)
        for earlier in step.reads:
            if earlier is not Stage.SAMPLES:
                is_open |= is_missing & known[earlier].missing
        counts.unknown += int(is_open.sum())
        counts.missing += int((is_missing & ~is_open).sum())

    def _preview(self, counts: StageDryRun, window: Window, preview: "_Preview") -> None:
        """Compute a stage for a window with a judge that counts."""
        step = window.step
        is_certain = step.recipe is not None and preview.certain.issuperset(step.reads)
        ledger = self._ledger
        counted = dict(ledger.accounts), dict(ledger.judges), ledger.spared
        models = self._counting.select(step.settings)
        preview.rows[step.stage] = window.compute(
            self._store, preview.rows, lambda tables: step.definition.compute(tables, step.settings, models)
        )
        tallies = ledger.take()
        if self._counted is not None and step.stage not in self._counted:
            ledger.accounts, ledger.judges, ledger.spared = counted
        tally = sum(tallies.values(), Tally())
        counts.tally += tally
        for kind, of_kind in tallies.items():
            counts.kinds[kind] = counts.kinds.get(kind, Tally()) + of_kind
        counts.kept += len(window.found)
        if window.computed is not None:
            counts.certainty = least_certain((counts.certainty, self._certainty(step.stage, is_certain, tally)))
            if is_certain or step.refresh:
                counts.missing += len(window.computed)
            else:
                counts.unknown += len(window.computed)
        if is_certain and not tally.asked and not tally.waiting:
            preview.certain.add(step.stage)

    def _certainty(self, stage: Stage, is_certain: bool, tally: Tally) -> Certainty:
        if stage is Stage.EXPLANATIONS and not is_certain:
            return Certainty.AT_LEAST
        is_each = Product.CLAIMS_BY_EACH_CONTEXT in self._plan.metrics.products
        asks_by_answers = is_each and self._plan.metrics.products_by_every_context != WHOLE_SIDES
        asks_by_answers = asks_by_answers or any(request.metric.follows_up for request in self._plan.metrics.requests)
        asks_by_answers = asks_by_answers or Product.KEY_POINTS_BY_RESPONSE in self._plan.metrics.products
        if stage is Stage.VERDICTS and asks_by_answers and (tally.asked or tally.waiting):
            return Certainty.AT_LEAST
        is_sure_of_it = self._plan.models.cascade is None or stage is not Stage.VERDICTS or not tally.asked
        return Certainty.EXACT if is_certain and is_sure_of_it else Certainty.ESTIMATED


@dataclass(slots=True)
class _Preview:
    """The results for the rows of a window, with stand-ins for missing answers.

    Args:
        certain: Stages whose results have no stand-ins.
    """

    rows: dict[Stage, StageRows]
    certain: set[Stage] = field(default_factory=lambda: {Stage.SAMPLES})
