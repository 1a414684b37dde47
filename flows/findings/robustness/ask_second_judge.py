"""Judge some rows of a run, and of its baseline, by a second judge, with the claims that the first one found."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from flows.execution.judged_rows import SCORED, judge_rows, scores_of
from flows.execution.run import Run
from flows.planning.capabilities import question_kinds
from flows.planning.metric_plan import MetricPlan
from flows.results.gated_comparison import compare_rows_of_run
from metric_core.declarations.metric import MetricRequest
from metric_core.errors import AssayError, ConfigError
from metric_core.question_kinds import KindGroup
from metric_core.stages import Stage, closure
from tasks.findings.robustness.deciding_rows import choose_deciding_rows
from tasks.findings.robustness.second_judge_options import SecondJudgeOptions
from tasks.findings.robustness.second_judge_record import SecondJudgeRecord
from tasks.models.judges.protocol import Judge
from tasks.options.judge_options import JudgeSettings, SingleJudgeSettings
from tasks.options.judged_settings import JudgedSettings
from tasks.options.narrow import narrow
from tasks.options.settings import Settings
from tasks.runs.finished_run import FinishedRun
from tasks.runtime.usage import StageUsage
from tasks.stages.definition import Tables


def ask_second_judge(run: Run) -> SecondJudgeRecord | None:
    """Ask the second judge about the rows on which the gate, and the comparison with the baseline, hang.

    A judge that cannot be asked does not affect the run: the record then has the reason.

    Returns:
        The record; None without a second judge.
    """
    judge, options = run.plan.options(SecondJudgeOptions).second_judge, run.plan.monitoring.deploy
    baseline = None if run.plan.outputs.baseline is None else Path(run.plan.outputs.baseline)
    if judge is None:
        return None
    if baseline is None and options.gate is None:
        return SecondJudgeRecord(reason="the run has neither a baseline nor a gate")
    try:
        rows = compare_rows_of_run(options.gate, run.folder.path, baseline, options.match)
        judged = {each.key: each for each in run.plan.metrics.requests if _has_labels(each)}
        names = choose_deciding_rows(rows, judged)
        sides = (None if rows.pair.a is None else rows.pair.a, rows.pair.b)
        questions = _SecondJudge(run, judge)
        questions.check(judged[metric] for metric in names)
        before, after = (
            {}
            if side is None
            else {
                metric: questions.score(side.run, judged[metric], _known(side.row_ids, chosen))
                for metric, chosen in names.items()
            }
            for side in sides
        )
        return SecondJudgeRecord(
            judge=questions.name if names else "",
            baseline=None if rows.pair.a is None else rows.pair.a.run.run_id,
            rows=len(set().union(*names.values())),
            questions=questions.usage.questions - questions.usage.stored,
            stored=questions.usage.stored,
            chosen={metric: tuple(_known(rows.pair.b.row_ids, chosen)) for metric, chosen in names.items()},
            before=before,
            after=after,
        )
    except AssayError as error:
        return SecondJudgeRecord(reason=str(error))


def _has_labels(request: MetricRequest) -> bool:
    """Return whether the scores of a metric are verdicts or ratings of a judge, not texts that it wrote."""
    return any(kind.group is not KindGroup.WRITING for kind in question_kinds(request))


def _known(ids: Mapping[str, str], names: Iterable[str]) -> Iterator[str]:
    """Yield the ids of those of some rows that a run has."""
    return (ids[name] for name in names if name in ids)


class _SecondJudge:
    """A second judge, and the cost of what it was asked."""

    def __init__(self, run: Run, judge: SingleJudgeSettings) -> None:
        self._run = run
        self._judge = narrow(judge, JudgeSettings)
        self.usage = StageUsage()

    @property
    def name(self) -> str:
        """The name of its model."""
        return self._open().identity.model

    def check(self, requests: Iterable[MetricRequest]) -> None:
        """Check that it is another judge than that of the run.

        Raises:
            ConfigError: It is the same, so that it could only repeat what that said.
        """
        known = self._run.record.judge_fingerprints
        for kind in {kind for request in requests for kind in question_kinds(request)}:
            if kind.group is not KindGroup.WRITING and known.get(str(kind)) == self._open().fingerprint(kind):
                raise ConfigError("it is the judge of the run; name another one")

    def _open(self) -> Judge:
        settings = self._settings(self._run.plan.metrics)[Stage.VERDICTS]
        return self._run.models.select(settings).judge()

    def score(self, of: FinishedRun, request: MetricRequest, ids: Iterator[str]) -> dict[str, float]:
        """Return row id -> score of some rows of a finished run; rows without a usable verdict are left out."""
        chosen = list(ids)
        metrics = replace(self._run.plan.metrics, requests=(request,), products=closure(request.products))
        computed, usage = judge_rows(metrics, self._settings(metrics), _tables(of, metrics, chosen), self._run.models)
        self.usage += usage
        scores = scores_of(computed)
        return {row: round(value, 4) for (row, metric), value in scores.items() if metric == request.key}

    def _settings(self, metrics: MetricPlan) -> dict[Stage, Settings]:
        """Return the settings of the stages with this judge, whose probabilities no calibration maps."""
        own = {"judge": self._judge, "panel": (), "cascade": None}
        return {
            stage: each.model_copy(update=own) if isinstance(each, JudgedSettings) else each
            for stage, each in metrics.settings_instead(self._run.plan.stages).items()
        }


def _tables(of: FinishedRun, metrics: MetricPlan, rows: Collection[str]) -> Tables:
    """Return the tables of some rows that the stages of metrics read, as a finished run has them."""
    read = {each for stage in metrics.sharded_stages if stage in SCORED for each in metrics.inputs_of(stage)}
    return {stage: of.rows(stage, rows) for stage in (Stage.SAMPLES, *sorted(read - SCORED - {Stage.SAMPLES}))}
