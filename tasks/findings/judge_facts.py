"""Read what the findings of runs know of their judge."""

from metric_core.statistics.judge_variance import JudgeVariance
from tasks.comparison.judge_evidence import JudgeEvidence
from tasks.findings.on_judge import SecondJudgments
from tasks.findings.table import find_in
from tasks.record.run_record import RunRecord
from tasks.runs.finished_run import FinishedRun


def judge_evidence(before: FinishedRun, after: FinishedRun) -> JudgeEvidence:
    """Return what the findings of two runs say about their judge; of several that say something, the first."""
    found = (each.on_judge.evidence for each in find_in((before.record, after.record)))
    return next((find(before, after) for find in found if find is not None), JudgeEvidence())


def judge_variances(record: RunRecord) -> dict[str, JudgeVariance]:
    """Return the variance of the judge's scores by metric, as far as a run knows it."""
    found = (each.on_judge.variances for each in find_in((record,)))
    return {metric: variance for find in found if find is not None for metric, variance in find(record).items()}


def second_judgments(record: RunRecord) -> dict[str, SecondJudgments]:
    """Return metric -> row id -> the score of a row of a run and the one when it was judged again."""
    found = (each.on_judge.second_judgments for each in find_in((record,)))
    return {metric: judged for find in found if find is not None for metric, judged in find(record).items()}
