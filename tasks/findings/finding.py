"""Define a finding: its entries in the record of a run, and what is shown of them where."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from metric_core.declarations.metric import MetricRequest
from metric_core.statistics.summary import MetricSummary
from tasks.comparison.run_pair import RunPair
from tasks.documents.blocks import Block, Caution
from tasks.findings.comparison import FindingComparison
from tasks.findings.on_judge import OnJudge
from tasks.findings.parts import Fact, Figure, Templated
from tasks.findings.standing import PastRun, Standing
from tasks.record.findings import Findings, HasEntry
from tasks.record.run_record import RunRecord
from tasks.record.run_summary import RunSummary
from tasks.rows.computed_tables import RunTables
from tasks.runs.run_folder import RunFolder


@dataclass(frozen=True, slots=True)
class RunRecords:
    """Record and summary of a finished run, and its folder."""

    record: RunRecord
    summary: RunSummary
    folder: Path


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """A run whose tables are in its folder, to be counted for its summary.

    Args:
        record: Record of the run so far.
        requests: Metrics, in the order of the report.
        slices: Columns that divide the rows.
        groups: Group of each row by row id; None if rows are independent.
        weights: Weight of each row by row id; None if each counts once.
    """

    folder: RunFolder
    tables: RunTables
    record: RunRecord
    requests: Sequence[MetricRequest]
    slices: Sequence[str]
    groups: Mapping[str, str] | None
    weights: Mapping[str, float] | None = None


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
        headline: Function that returns lines for the terminal above the means.
        lines: Function that returns lines for the terminal below them.
        details: Function that returns lines for a terminal with `--verbose`.
        caution: Function that returns a warning that report, terminal and alerts show before anything else.
        header: Function that returns a part of the report's header.
        subheader: Function that returns a part of the header below the worst metrics.
        filter: Function that returns a filter of the rows of the report.
        section: Function that returns a section of the report: blocks, or a template.
        of_metric: Function that returns parts of the report's summary by metric.
        of_judge: Function that returns facts on the judge for the report.
        provenance: Function that returns facts on what was evaluated for the report.
        rows: Function that returns a function from a row of the samples table to further values of the row in the
            report, whose rows have these ids. The opened row shows its `parts`: titles, each with a list of items.
        blocks: Function that returns blocks for the terminal, below the lines.
        table: Function that returns a table for notebooks and other programs.
        recorded: Function that returns metrics over a part of the rows, for the history: column, value and summary.
        means: Function that returns the mean of each metric in an earlier run, from which the report shows the change.
        lacks: Function that returns sentences on what later runs need of this one but will not have.
        reading: Function that returns sentences on how to read the report's summary.
        notes: Function that returns sentences below the report's table of stages.
        figures: Function that returns figures for monitoring.
        history: Function from what a history keeps of runs, oldest first, to what its page draws, by name.
        history_rows: Function from the same to rows of a table with a column per run: words -> counts.
        standing: Function from the runs of an evaluation, oldest first, and the present to how the evaluation stands.
        kept_figures: Function from two runs, and names of rows that do not count, to figures of both over the others.
        comparison: Comparison of two runs.
        on_judge: Functions that return knowledge of the judge.
    """

    record: tuple[type[HasEntry], ...] = ()
    summary: tuple[type[HasEntry], ...] = ()
    count: Callable[[WrittenRows], Iterable[HasEntry | None]] | None = None
    headline: Lines = no_lines
    lines: Lines = no_lines
    details: Lines = no_lines
    caution: Callable[[RunRecords], Caution | None] | None = None
    header: Callable[[RunRecords], Templated | None] | None = None
    subheader: Callable[[RunRecords], Templated | None] | None = None
    filter: Callable[[RunRecords], Templated | None] | None = None
    section: Callable[[RunRecords], Templated | Sequence[Block] | None] | None = None
    of_metric: Callable[[RunRecords], Mapping[str, Templated]] | None = None
    of_judge: Callable[[RunRecords], Iterable[Fact]] | None = None
    provenance: Callable[[RunRecords], Iterable[Fact]] | None = None
    rows: Callable[[RunRecords, Sequence[str]], Callable[[Mapping[str, Any]], Mapping[str, Any]]] | None = None
    blocks: Callable[[RunRecords], Iterable[Block]] | None = None
    table: Callable[[RunRecords], pa.Table] | None = None
    recorded: Callable[[RunSummary], Iterable[tuple[str, str, MetricSummary]]] | None = None
    means: Callable[[RunRecords], Mapping[str, float]] | None = None
    lacks: Lines = no_lines
    reading: Lines = no_lines
    notes: Lines = no_lines
    figures: Callable[[RunRecords], Iterable[Figure]] | None = None
    history: Callable[[Sequence[Findings]], Mapping[str, Any]] | None = None
    history_rows: Callable[[Sequence[Findings]], Mapping[str, Sequence[int | None]]] | None = None
    standing: Callable[[Sequence[PastRun], datetime], Iterable[Standing]] | None = None
    kept_figures: Callable[[RunPair, Collection[str]], Mapping[str, tuple[float, float]]] | None = None
    comparison: FindingComparison | None = None
    on_judge: OnJudge = field(default_factory=OnJudge)
