"""What a run would find kept, and what it would ask, told before anything is asked.

The plan goes the way of the run: it reads the samples, makes every stage's key, and runs the stages whose tables are
not kept with a judge that only counts. So it can not count otherwise than the run asks. Where an answer that is not
there decides what is asked next, it says so.
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any

from flows.config import RunConfig, tables_root
from flows.plan import Plan
from flows.running.stages import STAGE_TASKS, samples_settings, stage_settings
from metric_core.errors import AssayError, ConfigError
from metric_core.products import Product, Stage
from metric_core.schemas import SCHEMAS
from tasks.identity import identity_of
from tasks.likeness import ShardLikeness
from tasks.planning import Ledger, PlanningJudge, Tally
from tasks.resources import planned_by
from tasks.results import StageResults
from tasks.samples import SamplesResult, read_shards
from tasks.settings import JudgedSettings, Settings
from tasks.stage import StageTask
from tasks.tables.store import TableStore


class Certainty(StrEnum):
    """How far numbers can be trusted."""

    EXACT = "exact"
    ESTIMATED = "estimated"
    AT_LEAST = "at least"


@dataclass(slots=True)
class StageForecast:
    """What a run would do in one stage.

    Args:
        stage: the stage.
        judged: whether it asks the judge.
        kept: shards whose tables are kept.
        missing: shards that have to be computed for certain.
        unknown: shards of which only the run can tell, because what they are made from is not there yet, or because a
            model is out of reach.
        tally: what it would ask for the shards that are not kept.
        certainty: of the tally.
    """

    stage: Stage
    judged: bool
    kept: int = 0
    missing: int = 0
    unknown: int = 0
    tally: Tally = field(default_factory=Tally)
    certainty: Certainty = Certainty.EXACT


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run would do.

    Args:
        rows: rows that it would evaluate.
        bad_rows: rows that it would leave out.
        shards: parts that the rows come in.
        stages: the stages whose tables are kept, in the order of the plan.
        problems: why something could not be told.
    """

    rows: int
    bad_rows: int
    shards: int
    stages: tuple[StageForecast, ...]
    problems: tuple[str, ...]

    @property
    def tally(self) -> Tally:
        """What all stages would ask."""
        return sum((stage.tally for stage in self.stages), Tally())

    @property
    def certainty(self) -> Certainty:
        """Of the tally: that of its least certain part."""
        found = {stage.certainty for stage in self.stages}
        return next((c for c in (Certainty.AT_LEAST, Certainty.ESTIMATED) if c in found), Certainty.EXACT)


def forecast_of(config: RunConfig, plan: Plan) -> Forecast:
    """What the run of a plan would do. Nothing is asked, but what the judge's server can do.

    Args:
        config: the configuration of the run.
        plan: its plan.

    Raises:
        ConfigError: the contexts are fetched when the run begins.
        SourceError: the data can not be read, or have bad rows.
    """
    if config.retriever is not None:
        raise ConfigError(
            "what a run asks depends on the contexts that the retriever gives, which are fetched when it begins; "
            "leave the retriever out to see what the data as it is would ask"
        )
    samples = read_shards(samples_settings(config, plan), tables_root(config))
    return _Forecaster(config, plan).forecast(samples)


class _Forecaster:
    def __init__(self, config: RunConfig, plan: Plan) -> None:
        self._config = config
        self._plan = plan
        self._root = tables_root(config)
        self._settings = stage_settings(config, plan)
        self._problems: list[str] = []
        self._ledger = Ledger()
        self._identities = {stage: self._identity(self._settings[stage]) for stage in self._kept_stages}

    @property
    def _kept_stages(self) -> list[Stage]:
        """Scores are computed by every run, and cost nothing."""
        return [stage for stage in self._plan.stages if stage in STAGE_TASKS and stage is not Stage.AGGREGATION]

    def forecast(self, samples: SamplesResult) -> Forecast:
        judged = {stage: isinstance(self._settings[stage], JudgedSettings) for stage in self._kept_stages}
        stages = {stage: StageForecast(stage, judged[stage]) for stage in self._kept_stages}
        for ref in samples.refs:
            shard = ShardLikeness({Stage.SAMPLES: ref})
            for stage, found in stages.items():
                self._look(stage, shard, found)
        rows = sum(ref.rows for ref in samples.refs)
        problems = tuple(Counter(self._problems))
        return Forecast(rows, samples.bad_row_count, len(samples.refs), tuple(stages.values()), problems)

    def _identity(self, settings: Settings) -> str | None:
        if isinstance(settings, JudgedSettings) and settings.judge.launch is not None:
            self._problems.append("the judge is launched by the run, so what is kept of its answers is unknown")
            self._ledger.offline = True
            return None
        if isinstance(settings, JudgedSettings) and self._ledger.offline:
            return None
        try:
            return identity_of(settings)
        except AssayError as error:
            self._problems.append(str(error))
            self._ledger.offline = self._ledger.offline or isinstance(settings, JudgedSettings)
            return None

    def _look(self, stage: Stage, shard: ShardLikeness, found: StageForecast) -> None:
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

    def _count(self, task: StageTask[Any], shard: ShardLikeness, found: StageForecast) -> None:
        """Runs the stage with a judge that counts; what it gives is the table itself if nothing had to be asked."""
        stage, before = found.stage, self._plan.before(found.stage)
        with planned_by(partial(PlanningJudge, self._ledger)):
            output = task.compute(shard.tables_of(before), self._settings[stage])
        tally = self._ledger.taken()
        found.tally += tally
        is_certain = shard.refs_of(before) is not None and self._identities[stage] is not None
        found.certainty = max(found.certainty, self._certainty(stage, is_certain, tally), key=list(Certainty).index)
        if is_certain and not tally.asked and not tally.waiting:
            shard.refs[stage] = TableStore(self._root).write(output.table, SCHEMAS[stage])
        else:
            shard.likenesses[stage] = output.table

    def _certainty(self, stage: Stage, is_certain: bool, tally: Tally) -> Certainty:
        if stage is Stage.EXPLANATIONS and not is_certain:
            return Certainty.AT_LEAST
        asks_by_answers = Product.CLAIMS_BY_EACH_CONTEXT in self._plan.products and self._config.verdict == "binary"
        if stage is Stage.VERDICTS and asks_by_answers and (tally.asked or tally.waiting):
            return Certainty.AT_LEAST
        return Certainty.EXACT if is_certain else Certainty.ESTIMATED
