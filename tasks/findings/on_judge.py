"""Define what a finding knows of the judge of a run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from metric_core.statistics.judge_variance import JudgeVariance
from tasks.comparison.judge_evidence import JudgeEvidence
from tasks.record.findings import Findings
from tasks.record.outcome import OutcomeIncident
from tasks.record.run_record import RunRecord
from tasks.runs.finished_run import FinishedRun

SecondJudgments: TypeAlias = Mapping[str, tuple[float, float]]
"""Row id -> score of the row, and its score when it was judged again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnJudge:
    """Knowledge of the judge of a run. Everything is optional.

    Args:
        evidence: Function from an earlier and a later run to what it says about a change of the judge.
        incidents: Function from a monitored run, and what the history keeps of those before it, oldest first, to
            incidents of the judge.
        version: Function that returns whether the judge answers as before, as a version of the history; empty if that
            is not known.
        variances: Function that returns the variance of the judge's scores by metric, for a gate.
        second_judgments: Function that returns the scores of rows that were judged again, by metric, for a gate.
    """

    evidence: Callable[[FinishedRun, FinishedRun], JudgeEvidence] | None = None
    incidents: Callable[[RunRecord, Sequence[Findings]], Iterable[OutcomeIncident]] | None = None
    version: Callable[[Findings], str] | None = None
    variances: Callable[[RunRecord], Mapping[str, JudgeVariance]] | None = None
    second_judgments: Callable[[RunRecord], Mapping[str, SecondJudgments]] | None = None
