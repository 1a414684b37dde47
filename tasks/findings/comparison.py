"""Define what a finding says of two runs."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from metric_core.statistics.pairs import ScoreColumns
from tasks.comparison.run_comparison import ComparedFinding, RunComparison
from tasks.comparison.run_pair import RunPair
from tasks.documents.blocks import Block
from tasks.findings.parts import Templated


@dataclass(frozen=True, slots=True)
class ComparedRows:
    """Two runs whose rows are paired.

    Args:
        columns: Scores of the metrics of either run.
        seed: Seed of the resampling.
    """

    pair: RunPair
    columns: Sequence[ScoreColumns]
    seed: int


Sentences: TypeAlias = Callable[[RunComparison], Iterable[str]]


def no_sentences(_comparison: RunComparison) -> Iterable[str]:
    """Return no sentence."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingComparison:
    """The comparison of a finding of two runs.

    Args:
        compare: Function that compares the runs; it returns None if there is nothing to compare.
        headline: Function that returns sentences for the top.
        sentences: Function that returns sentences below the table of the metrics.
        tables: Function that returns blocks below that table.
        last: Function that returns blocks below the rows that changed most.
        section: Function that returns a section of the page, which has the rows with these names.
        rows: Function that returns the names of rows that the page should have.
        row_values: Function that returns a function from the name of a row to further values of the row on the page.
        notes: Function that returns sentences for an alert.
        table: Function that returns a table for notebooks and other programs.
    """

    compare: Callable[[ComparedRows], ComparedFinding | None]
    headline: Sentences = no_sentences
    sentences: Sentences = no_sentences
    tables: Callable[[RunComparison], Iterable[Block]] | None = None
    last: Callable[[RunComparison], Iterable[Block]] | None = None
    section: Callable[[RunComparison, Collection[str]], Templated | None] | None = None
    rows: Sentences = no_sentences
    row_values: Callable[[RunComparison], Callable[[str], Mapping[str, Any]]] | None = None
    notes: Sentences = no_sentences
    table: Callable[[RunComparison], pa.Table] | None = None
