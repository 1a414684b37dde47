"""Define what a finding says of two runs."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa

from metric_core.gates.rules import GateResult
from metric_core.statistics.comparison import MetricComparison, PairedMetric
from metric_core.statistics.earlier_runs import Adjusted
from metric_core.statistics.pairs import Pairs, ScoreColumns
from tasks.comparison.run_comparison import ComparedFinding, RunComparison
from tasks.comparison.run_pair import RunPair
from tasks.documents.blocks import Block
from tasks.findings.parts import Templated


@dataclass(frozen=True, slots=True)
class CheckedGate:
    """A gate and its result.

    Args:
        check: Function that applies it to other scores of the same runs.
        is_judge_known: True if it is known how much the judge varies.
    """

    result: GateResult
    check: Callable[[Sequence[ScoreColumns]], GateResult]
    is_judge_known: bool = False


@dataclass(frozen=True, slots=True)
class ComparedRows:
    """Two runs whose rows are paired, or one run that a gate checks.

    Args:
        columns: Scores of the metrics of either run.
        seed: Seed of the resampling.
        metrics: Comparisons of the metrics that both runs have.
        gate: The gate; None without one.
        paired: Paired rows of these metrics, by key.
    """

    pair: RunPair
    columns: Sequence[ScoreColumns]
    seed: int
    metrics: Sequence[MetricComparison] = ()
    gate: CheckedGate | None = None
    paired: Mapping[str, PairedMetric] = field(default_factory=dict)

    def pairs_of(self, compared: MetricComparison) -> tuple[Pairs, Adjusted]:
        """Return the pairs that a comparison is about, and their differences less what earlier runs predict."""
        return self.paired[compared.metric].on_scale(compared.scale)


Sentences: TypeAlias = Callable[[RunComparison], Iterable[str]]


def no_sentences(_comparison: RunComparison) -> Iterable[str]:
    """Return no sentence."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingComparison:
    """The comparison of a finding of two runs.

    Args:
        compare: Function that compares the runs; it returns None if there is nothing to compare. It gets a single run
            that a gate checks, too, if the line of the finding in the table says when it compares.
        headline: Function that returns sentences for the top.
        sentences: Function that returns sentences below the table of the metrics.
        tables: Function that returns blocks below that table.
        gate_sentences: Function that returns sentences below the rules of a gate.
        last: Function that returns blocks below the rows that changed most.
        section: Function that returns a section of the page, which has the rows with these names.
        rows: Function that returns the names of rows that the page should have.
        row_values: Function that returns a function from the name of a row to further values of the row on the page.
        notes: Function that returns sentences for an alert.
        opening: Function that returns sentences with which an alert begins, because they explain the others.
        table: Function that returns a table for notebooks and other programs.
    """

    compare: Callable[[ComparedRows], ComparedFinding | None]
    headline: Sentences = no_sentences
    sentences: Sentences = no_sentences
    gate_sentences: Sentences = no_sentences
    tables: Callable[[RunComparison], Iterable[Block]] | None = None
    last: Callable[[RunComparison], Iterable[Block]] | None = None
    section: Callable[[RunComparison, Collection[str]], Templated | None] | None = None
    rows: Sentences = no_sentences
    row_values: Callable[[RunComparison], Callable[[str], Mapping[str, Any]]] | None = None
    notes: Sentences = no_sentences
    opening: Sentences = no_sentences
    table: Callable[[RunComparison], pa.Table] | None = None
