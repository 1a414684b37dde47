"""Ask about some rows again, past the cache: to detect a judge that changes under its name, and how much it varies."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from flows.config.run_rate import runs_per_year
from flows.execution.calibration_lookup import mapped_settings
from flows.execution.run import Run
from flows.planning.anchor import AnchorPlan
from flows.planning.capabilities import scoring_kinds
from flows.planning.run_plan import RunPlan
from flows.publishing.run_subject import subject_name
from metric_core.errors import AssayError
from metric_core.stages import Stage
from metric_core.statistics.alarms import AlarmSettings
from metric_core.statistics.asked_again import FULL_RUNS, count_rows
from metric_core.statistics.bounded_means import Bounds
from metric_core.statistics.judge_variance import JudgeVariance, estimate_judge_variance
from tasks.engine.registry import STAGES
from tasks.history.catalogue import Catalogue
from tasks.history.recorded_run import COMPLETED, RecordedMetric
from tasks.models.judges.protocol import IN_PROCESS
from tasks.opening.repeated_questions import RepeatedQuestions
from tasks.opening.run_models import RunModels
from tasks.prefect_support.run_log import run_logger
from tasks.record.repeats import AskedAgain, JudgeRepeat, RepeatUsage, VarianceRecord
from tasks.rows.computed_tables import RunTables
from tasks.runs.judge_drift import (
    RUNS_READ,
    JudgeDriftDetector,
    PastRepeat,
    RepeatTurn,
    find_changed_judges,
    shuffle_rows,
)
from tasks.runtime.usage import Usage
from tasks.stages.definition import Tables
from tasks.tables.merge import select_rows

LABELLED = frozenset({Stage.RATINGS, Stage.VERDICTS})
"""Stages that ask a judge for labels; the texts that it writes are not asked for again."""

_RUNS = 3 * RUNS_READ
"""Number of runs of the history to read: some may have had no anchor."""


_Scores: TypeAlias = dict[str, dict[str, tuple[float, float]]]
"""Metric -> row -> score with the kept answers and with the new ones."""


@dataclass(frozen=True, slots=True)
class EarlierRepeats:
    """The runs of an evaluation that asked about anchor rows again, in the history.

    Args:
        history: Address of the history, as the option `history`.
        names: Names by which runs of the evaluation may be recorded: a monitored run has that of its subject.
        run_id: Id of the run to leave out.
    """

    history: str | None
    names: frozenset[str]
    run_id: str = ""

    @classmethod
    def of_run(cls, run: Run) -> "EarlierRepeats":
        """Return those before a run."""
        options = run.plan.monitoring
        names = (run.record.name, subject_name(options.name, options.source, run.subject.index))
        return cls(options.history, frozenset(names), run.record.run_id)

    def last_metrics(self) -> tuple[RecordedMetric, ...]:
        """Return the metrics of the latest completed run; none if the history cannot be used."""
        try:
            catalogue = Catalogue(self.history)
            runs = [run for name in self.names for run in catalogue.runs(name, last=2, statuses=(COMPLETED,))]
        except AssayError:
            return ()
        others = [run for run in runs if run.run_id != self.run_id]
        return max(others, key=lambda run: run.created).metrics if others else ()

    def read(self) -> list[PastRepeat]:
        """Return them, oldest first.

        Raises:
            ConfigError: The history cannot be used.
        """
        catalogue = Catalogue(self.history)
        runs = [run for name in self.names for run in catalogue.runs(name, last=_RUNS) if run.run_id != self.run_id]
        repeats = ((run.created, run.details.repeat) for run in runs)
        found = [
            PastRepeat(created, again)
            for created, again in repeats
            if again is not None and again.reference is not None
        ]
        return sorted(found, key=lambda each: each.start)


def is_asked_again(anchor: AnchorPlan) -> bool:
    """Return whether anchor rows are asked about again: only of judges that their weights do not identify."""
    return bool(anchor.settings.drift and can_ask_again(anchor.run))


def can_ask_again(plan: RunPlan) -> bool:
    """Return whether a run has judges that may answer differently when they are asked again."""
    served = any(judge.backend not in IN_PROCESS for judge in plan.models.judges)
    return served and not LABELLED.isdisjoint(plan.metrics.stages)


def expect_rows(anchor: AnchorPlan, rows: int, earlier: EarlierRepeats) -> int:
    """Return the number of anchor rows that the next run will ask about again, if the judge is still the same.

    Args:
        rows: Number of rows of the anchor.
    """
    try:
        past = earlier.read()
    except AssayError:
        return 0
    if not rows or not past or past[-1].found.repeat < FULL_RUNS:
        return rows
    year = runs_per_year(anchor.run.monitoring.deploy, datetime.now(UTC))
    return count_rows(anchor.settings.drift, rows, year)[0]


def keep_findings(earlier: EarlierRepeats, reason: str) -> AskedAgain:
    """Return the record of a run that could ask nothing again, with what earlier runs found."""
    try:
        past = earlier.read()
    except AssayError:
        past = []
    judges = find_changed_judges(past[-1].found) if past else ()
    changed = tuple(JudgeRepeat(judge=each.judge, change=each.change) for each in judges)
    return AskedAgain(reason=reason, judges=changed)


def ask_again(  # noqa: PLR0913 the run, its anchor and what is known of both
    run: Run, anchor: AnchorPlan, tables: RunTables, earlier: EarlierRepeats, *, is_new: bool, is_uniform: bool = False
) -> AskedAgain | None:
    """Ask about some anchor rows again, and return the record of it.

    If all new answers are the same and the kept ones are not, or if the scores of the run are suspiciously uniform, all
    rows are asked about. A judge that cannot be asked does not affect the run: the entry then has the reason.

    Args:
        run: The evaluation of the anchor.
        is_new: True if the run has judged the anchor itself, whose kept answers are then new.
        is_uniform: True if the rows of the run itself have the same score, which earlier runs make improbable.
    """
    if not is_asked_again(anchor):
        return None
    try:
        return _ask(_Rows(run, tables), anchor, earlier.read(), is_new=is_new, is_uniform=is_uniform)
    except AssayError as error:
        return keep_findings(earlier, str(error))


def ask_rows_again(run: Run, tables: RunTables) -> AskedAgain | None:
    """Ask about rows of a run again, as many as its options say, and return the record of it.

    A judge that cannot be asked does not affect the run: the entry then has the reason.

    Returns:
        The record; None if nothing is to be asked, or only judges whose weights determine their answers.
    """
    count = run.plan.outputs.ask_again
    if not count or not can_ask_again(run.plan):
        return None
    ids = [row for shard in tables.shards(Stage.SAMPLES, ["row_id"]) for row in shard["row_id"].to_pylist()]
    chosen = shuffle_rows(ids)[:count]
    try:
        return _ask_rows(_Rows(run, tables, chosen), RepeatedQuestions(run.models))
    except AssayError as error:
        return AskedAgain(reason=str(error))


def ask_unsettled_rows(
    run: Run, tables: RunTables, before: AskedAgain | None, variances: Mapping[str, VarianceRecord]
) -> AskedAgain | None:
    """Ask again about the rows on which the judge's noise may turn the gate, once the run folder is written.

    The gate then takes the mean of both judgments, whose noise is smaller.

    Args:
        before: Rows that were asked about again so far; None without any.
        variances: Metric -> judge's share of the variance of its mean.

    Returns:
        The record with these rows; None if there are none, or the judge cannot be asked.
    """
    options, before = run.plan.monitoring.deploy, before or AskedAgain()
    if options.gate is None or not variances or not can_ask_again(run.plan):
        return None
    from flows.results.gated_comparison import find_unsettled_rows  # noqa: PLC0415 few runs have a gate

    known = before.scores
    baseline = run.plan.outputs.baseline
    try:
        folder = None if baseline is None else Path(baseline)
        unsettled = find_unsettled_rows(options.gate, run.folder.path, folder, options.match)
        chosen = {row for metric, rows in unsettled.items() for row in rows - known.get(metric, {}).keys()}
        kinds = {kind for each in run.plan.metrics.requests if each.key in unsettled for kind in scoring_kinds(each)}
        found = _ask_rows(_Rows(run, tables, chosen), RepeatedQuestions(run.models, kinds)) if chosen else None
    except AssayError as error:
        run_logger().warning("rows that decide the gate could not be asked about again: %s", error)
        return None
    if found is None:
        return None
    scores = {metric: {**found.scores.get(metric, {}), **known.get(metric, {})} for metric in unsettled}
    bounds = {each.key: Bounds.of_metric(each.bounds) for each in run.plan.metrics.requests}
    estimated = ((metric, estimate_judge_variance([scores[metric]], bounds[metric])) for metric in found.variance)
    variance = {metric: each for metric, each in estimated if metric in unsettled and each is not None}
    usages = [dict(each.usage) for each in (before, found) if each.usage is not None]
    return AskedAgain(
        rows=len(set().union(*({**known, **scores}.values()))),
        questions=before.questions + found.questions,
        usage=RepeatUsage(**{name: sum(each[name] for each in usages) for name in RepeatUsage.model_fields}),
        scores={**known, **scores},
        variance={**before.variance, **variance},
    )


def _ask_rows(rows: "_Rows", questions: RepeatedQuestions) -> AskedAgain | None:
    """Ask about rows again, and return the record of it; None if their judges are not asked.

    Raises:
        AssayError: A judge cannot be asked.
    """
    chosen = rows.ids
    rows.note(questions, chosen)
    if not questions.judges:
        return None
    asked, usage = questions.ask()
    scores = rows.scores(questions, chosen)
    return AskedAgain(
        rows=len(chosen),
        questions=asked,
        usage=_spent(usage),
        scores=scores,
        variance=_variance([scores], questions, rows.run),
    )


class _Rows:
    """Rows of a run that are judged.

    Args:
        run: The evaluation of the rows.
        chosen: Ids of the rows; None for all.
    """

    def __init__(self, run: Run, tables: RunTables, chosen: Collection[str] | None = None) -> None:
        self.run = run
        self._shards = [
            {
                stage: table if chosen is None else select_rows(table, chosen)
                for stage, table in zip(tables.stages, shard, strict=True)
            }
            for shard in zip(*(tables.shards(stage) for stage in tables.stages), strict=True)
        ]
        self._digests = tables.digests(Stage.SAMPLES)
        self._settings = mapped_settings(run.plan, run.models)

    @property
    def ids(self) -> list[str]:
        """The ids of all rows."""
        return [row for shard in self._shards for row in shard[Stage.SAMPLES]["row_id"].to_pylist()]

    @property
    def reference(self) -> str:
        """The digest of the rows and the judges; only runs with the same digest are compared."""
        content = [self._digests, self.run.record.judge_fingerprints]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def note(self, questions: RepeatedQuestions, rows: Collection[str]) -> None:
        """Record the questions about some rows."""
        models = questions.models(note=True)
        for shard in self._shards:
            for row in [row for row in shard[Stage.SAMPLES]["row_id"].to_pylist() if row in rows]:
                questions.row = row
                self._judge({stage: select_rows(table, [row]) for stage, table in shard.items()}, models)

    def scores(self, questions: RepeatedQuestions, rows: Collection[str]) -> _Scores:
        """Return metric -> row -> the score with the kept answers and that with the new ones."""
        found: _Scores = {}
        models = questions.models(note=False)
        for shard in self._shards:
            tables = {stage: select_rows(table, rows) for stage, table in shard.items()}
            kept, again = _values(tables), _values(self._judge(tables, models, scored=True))
            for row, metric in kept.keys() & again.keys():
                found.setdefault(metric, {})[row] = (round(kept[row, metric], 4), round(again[row, metric], 4))
        return found

    def _judge(self, tables: Tables, models: RunModels, *, scored: bool = False) -> Tables:
        """Return the tables with those of the stages that ask for labels, and if wanted the scores, computed again."""
        result = dict(tables)
        for stage in self.run.plan.metrics.sharded_stages:
            if stage in LABELLED or (scored and stage is Stage.AGGREGATION):
                settings, inputs = self._settings[stage], self.run.plan.metrics.inputs_of(stage)
                computed = STAGES[stage].compute(
                    {each: result[each] for each in inputs}, settings, models.select(settings)
                )
                result[stage] = computed.table
        return result


def _values(tables: Tables) -> dict[tuple[str, str], float]:
    cells = tables[Stage.AGGREGATION].to_pylist()
    return {(cell["row_id"], cell["metric"]): cell["value"] for cell in cells if cell["value"] is not None}


def _ask(
    rows: _Rows, anchor: AnchorPlan, past: Sequence[PastRepeat], *, is_new: bool, is_uniform: bool
) -> AskedAgain | None:
    run, drift = rows.run, anchor.settings.drift
    start = datetime.fromisoformat(run.record.created)
    detector = JudgeDriftDetector(drift, AlarmSettings(runs=runs_per_year(run.plan.monitoring.deploy, start)))
    turn = detector.choose_turn(rows.ids, rows.reference, start, past, restart=is_new)
    questions = RepeatedQuestions(run.models)
    rows.note(questions, turn.rows)
    if not questions.judges:
        return None
    count, usage = questions.ask()
    is_uniform = is_uniform or any(each.uniform_answers() is not None for each in questions.judges.values())
    is_known = bool(turn.past and find_changed_judges(turn.past[-1].found))
    if is_uniform and not is_known and (rest := set(rows.ids) - set(turn.rows)):
        turn = replace(turn, rows=tuple(rows.ids))
        rows.note(questions, rest)
        count, usage = questions.ask()
    asked = questions.judges
    judges = tuple(
        detector.repeat(
            turn,
            name,
            each.by_row(),
            judges=len(asked),
            place=" and ".join(each.urls),
            uniform="" if (found := each.uniform_answers()) is None else found.sentence,
        )
        for name, each in asked.items()
    )
    scores = rows.scores(questions, turn.rows)
    is_same = all(each.change is None for each in judges)
    earlier = [each.found.scores for each in turn.past]
    return turn.to_record().extend(
        drift=drift,
        rows=len(turn.rows),
        questions=count,
        usage=_spent(usage),
        judges=judges,
        scores=_scores_since(judges, turn, scores),
        variance=_variance([*earlier, scores], questions, run) if is_same else {},
    )


def _spent(usage: Usage) -> RepeatUsage:
    return RepeatUsage(**{name: getattr(usage, name) for name in RepeatUsage.model_fields})


def _variance(
    runs: Sequence[Mapping[str, Mapping[str, Sequence[float]]]], questions: RepeatedQuestions, run: Run
) -> dict[str, JudgeVariance]:
    """Return the variance of the judge's scores, for the metrics whose scores are answers that were asked for again.

    Args:
        runs: Metric -> row -> kept and new score, for each run that asked again.
    """
    asked = {question.kind for judge in questions.judges.values() for question in judge.questions.values()}
    found = {}
    for request in run.plan.metrics.requests:
        scores = [each[request.key] for each in runs if request.key in each]
        if asked.issuperset(scoring_kinds(request)):
            variance = estimate_judge_variance(scores, Bounds.of_metric(request.bounds))
            if variance is not None:
                found[request.key] = variance
    return found


def _scores_since(
    judges: Sequence[JudgeRepeat], turn: RepeatTurn, new: Mapping[str, Mapping[str, tuple[float, float]]]
) -> _Scores:
    """Return the new scores, after those of the runs since a judge changed."""
    since = [datetime.fromisoformat(each.change.since) for each in judges if each.change is not None]
    earlier = [each.found.scores for each in turn.past if since and each.start >= min(since)]
    merged: _Scores = {}
    for scores in (*earlier, new):
        for metric, rows in scores.items():
            merged.setdefault(metric, {}).update(rows)
    return merged
