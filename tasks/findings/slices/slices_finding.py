"""Summarize and show the slices of a run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from metric_core.statistics.summary import MetricSummary
from tasks.documents.blocks import Block
from tasks.documents.run.score_table import MetricScale
from tasks.findings.finding import Finding, RunRecords, WrittenRows
from tasks.findings.parts import Templated
from tasks.findings.slices.slice_summaries import SliceRecords, summarize_slices_of_run
from tasks.findings.slices.slices_comparison import COMPARISON
from tasks.findings.slices.slices_section import CELL_HEIGHT, CELL_WIDTH, RowSliceNumbers, slice_sections
from tasks.findings.slices.slices_view import slice_blocks, slice_scores_table
from tasks.record.run_summary import RunSummary
from tasks.runs.row_grouping import columns_with
from tasks.runs.row_slicing import read_slices


def count(rows: WrittenRows) -> Iterator[SliceRecords]:
    """Yield the summaries of the slices."""
    slices = read_slices(rows.folder.read_samples(columns_with(*rows.slices)), rows.slices)
    yield SliceRecords(summarize_slices_of_run(rows.folder, rows.requests, slices, rows.groups, rows.weights))


def blocks(run: RunRecords) -> Iterator[Block]:
    """Yield the slices, for a terminal."""
    yield from slice_blocks(_columns(run))


def section(run: RunRecords) -> Templated:
    """Return a section of the report for each column."""
    content = {"slices": _sections(run), "cell_width": CELL_WIDTH, "cell_height": CELL_HEIGHT}
    return Templated("slices/section.html.j2", content)


def slice_filter(run: RunRecords) -> Templated:
    """Return the filter of the rows by their slice."""
    return Templated("slices/filter.html.j2", {"slices": _sections(run)})


def numbers_of_rows(run: RunRecords, _row_ids: Sequence[str]) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """Return a function that returns the number of a row's slice in each column."""
    numbers = RowSliceNumbers(_columns(run))
    return lambda sample: {"slices": numbers.find(sample)}


def table(run: RunRecords) -> pa.Table:
    """Return a row per slice and metric: mean, interval, counts, and whether it is worse than the other rows."""
    return slice_scores_table(_columns(run))


def metrics_of_slices(summary: RunSummary) -> Iterator[tuple[str, str, MetricSummary]]:
    """Yield the metrics of each slice."""
    found = summary.find(SliceRecords)
    for column in () if found is None else found.root:
        for one in column.slices:
            yield from ((column.column, one.value, sliced) for sliced in one.metrics)


def _columns(run: RunRecords) -> tuple[Any, ...]:
    found = run.summary.find(SliceRecords)
    return () if found is None else found.root


def _sections(run: RunRecords) -> list[dict[str, Any]]:
    scales = [MetricScale.of_metric(metric) for metric in run.record.metrics]
    return slice_sections(_columns(run), run.summary.by_metric, scales)


FINDING = Finding(
    summary=(SliceRecords,),
    count=count,
    blocks=blocks,
    section=section,
    filter=slice_filter,
    rows=numbers_of_rows,
    table=table,
    recorded=metrics_of_slices,
    comparison=COMPARISON,
)
