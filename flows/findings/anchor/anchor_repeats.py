"""Ask about some rows of the anchor again, past the cache, to detect a judge that changes under its name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from flows.config.run_rate import runs_per_year
from flows.execution.run import Run
from flows.findings.anchor.anchor_plan import AnchorPlan
from flows.findings.repeats.repeated_rows import RepeatedRows, Scores, can_ask_again, find_variances, repeat_usage
from flows.publishing.run_subject import subject_name
from metric_core.errors import AssayError
from metric_core.statistics.alarms import AlarmSettings
from metric_core.statistics.asked_again import FULL_RUNS, count_rows
from tasks.findings.anchor.anchor_record import repeat_of
from tasks.findings.repeats.judge_drift import (
    RUNS_READ,
    JudgeDriftDetector,
    PastRepeat,
    RepeatTurn,
    find_changed_judges,
)
from tasks.findings.repeats.repeat_record import AskedAgain, JudgeRepeat
from tasks.findings.repeats.repeated_questions import RepeatedQuestions
from tasks.history.catalogue import Catalogue
from tasks.history.recorded_run import COMPLETED, RecordedMetric
from tasks.rows.computed_tables import RunTables

_RUNS = 3 * RUNS_READ
"""Number of runs of the history to read: some may have had no anchor."""


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
        repeats = ((run.created, repeat_of(run.details)) for run in runs)
        found = [
            PastRepeat(created, again)
            for created, again in repeats
            if again is not None and again.reference is not None
        ]
        return sorted(found, key=lambda each: each.start)


def is_asked_again(anchor: AnchorPlan) -> bool:
    """Return whether anchor rows are asked about again: only of judges that their weights do not identify."""
    return bool(anchor.settings.drift and can_ask_again(anchor.run))


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
        return _ask(RepeatedRows(run, tables), anchor, earlier.read(), is_new=is_new, is_uniform=is_uniform)
    except AssayError as error:
        return keep_findings(earlier, str(error))


def _ask(
    rows: RepeatedRows, anchor: AnchorPlan, past: Sequence[PastRepeat], *, is_new: bool, is_uniform: bool
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
        usage=repeat_usage(usage),
        judges=judges,
        scores=_scores_since(judges, turn, scores),
        variance=find_variances([*earlier, scores], questions, run) if is_same else {},
    )


def _scores_since(
    judges: Sequence[JudgeRepeat], turn: RepeatTurn, new: Mapping[str, Mapping[str, tuple[float, float]]]
) -> Scores:
    """Return the new scores, after those of the runs since a judge changed."""
    since = [datetime.fromisoformat(each.change.since) for each in judges if each.change is not None]
    earlier = [each.found.scores for each in turn.past if since and each.start >= min(since)]
    merged: Scores = {}
    for scores in (*earlier, new):
        for metric, rows in scores.items():
            merged.setdefault(metric, {}).update(rows)
    return merged
