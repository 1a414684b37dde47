"""Define a finding: its entries in the record of a run, and what is shown of them where."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from metric_core.declarations.metric import MetricRequest
from metric_core.statistics.judge_variance import JudgeVariance
from tasks.comparison.judge_evidence import JudgeEvidence
from tasks.record.findings import Findings, HasEntry
from tasks.record.run_record import RunRecord
from tasks.record.run_summary import RunSummary
from tasks.reports.documents.blocks import Block
from tasks.rows.computed_tables import RunTables
from tasks.runs.finished_run import FinishedRun
from tasks.runs.outcome import OutcomeIncident
from tasks.runs.run_folder import RunFolder


@dataclass(frozen=True, slots=True)
class RunRecords:
    """Record and summary of a finished run."""

    record: RunRecord
    summary: RunSummary


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """A run whose tables are in its folder, to be counted for its summary.

    Args:
        record: Record of the run so far.
        requests: Metrics, in the order of the report.
        groups: Group of each row by row id; None if rows are independent.
    """

    folder: RunFolder
    tables: RunTables
    record: RunRecord
    requests: Sequence[MetricRequest]
    groups: Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class Fact:
    """Lines under a title in a list of facts of the report.

    Args:
        about: Further words on the last line.
    """

    title: str
    lines: Sequence[str]
    about: str = ""


@dataclass(frozen=True, slots=True)
class Templated:
    """A part of the report that a template of the room of its finding renders.

    Args:
        template: Name of the template: the room, a slash, and the file.
        content: Variables of the template, besides those that every part has.
    """

    template: str
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a run for monitoring.

    Args:
        name: Name of the gauge, without the prefix of this package.
        labels: Label -> value; names only, no text of the data.
    """

    name: str
    description: str
    value: float | None
    labels: Mapping[str, str] = field(default_factory=dict)


SecondJudgments: TypeAlias = Mapping[str, tuple[float, float]]
"""Row id -> score of the row, and its score when it was judged again."""

Lines: TypeAlias = Callable[[RunRecords], Iterable[str]]


def no_lines(_run: RunRecords) -> Iterable[str]:
    """Return no line."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A matter that a run finds out about itself. Everything but its entries is optional.

    Functions get a run that has one of the entries; those of two runs, or of a history, that one of the runs has one.

    Args:
        record: Types of its entries in run.json.
        summary: Types of its entries in summary.json.
        count: Function that returns its entries of summary.json.
        lines: Function that returns lines for the terminal.
        details: Function that returns lines for a terminal with `--verbose`.
        header: Function that returns parts for the top of the report.
        section: Function that returns a section of the report: blocks, or a template.
        of_judge: Function that returns facts on the judge for the report.
        provenance: Function that returns facts on what was evaluated for the report.
        rows: Function that returns a function from the id of a row to further values of the row in the report.
        means: Function that returns the mean of each metric in an earlier run, from which the report shows the change.
        lacks: Function that returns sentences on what later runs need of this one but will not have.
        notes: Function that returns sentences below the report's table of stages.
        figures: Function that returns figures for monitoring.
        history: Function from what a history keeps of runs, oldest first, to what its page draws, by name.
        judge_evidence: Function from an earlier and a later run to what it says of their judge.
        judge_incidents: Function from a monitored run, and what the history keeps of those before it, oldest first, to
            incidents of the judge.
        judge_version: Function that returns whether the judge answers as before, as a version of the history; empty if
            that is not known.
        judge_variances: Function that returns the variance of the judge's scores by metric, for a gate.
        second_judgments: Function that returns, by metric and row, the first score and that of a row that was judged
            again, for a gate.
        compare: Function from an earlier and a later run to blocks of their comparison.
    """

    record: tuple[type[HasEntry], ...] = ()
    summary: tuple[type[HasEntry], ...] = ()
    count: Callable[[WrittenRows], Iterable[HasEntry | None]] | None = None
    lines: Lines = no_lines
    details: Lines = no_lines
    header: Callable[[RunRecords], Templated | None] | None = None
    section: Callable[[RunRecords], Templated | Sequence[Block] | None] | None = None
    of_judge: Callable[[RunRecords], Iterable[Fact]] | None = None
    provenance: Callable[[RunRecords], Iterable[Fact]] | None = None
    rows: Callable[[RunRecords], Callable[[str], Mapping[str, Any]]] | None = None
    means: Callable[[RunRecords], Mapping[str, float]] | None = None
    lacks: Lines = no_lines
    notes: Lines = no_lines
    figures: Callable[[RunRecords], Iterable[Figure]] | None = None
    history: Callable[[Sequence[Findings]], Mapping[str, Any]] | None = None
    judge_evidence: Callable[[FinishedRun, FinishedRun], JudgeEvidence] | None = None
    judge_incidents: Callable[[RunRecord, Sequence[Findings]], Iterable[OutcomeIncident]] | None = None
    judge_version: Callable[[Findings], str] | None = None
    judge_variances: Callable[[RunRecord], Mapping[str, JudgeVariance]] | None = None
    second_judgments: Callable[[RunRecord], Mapping[str, SecondJudgments]] | None = None
    compare: Callable[[FinishedRun, FinishedRun], Iterable[Block]] | None = None
