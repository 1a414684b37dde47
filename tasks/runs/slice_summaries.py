"""Summarize the slices of a run for summary.json, and read them from there."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from metric_core.declarations.metric import MetricRequest
from metric_core.statistics.pairs import name_group
from metric_core.statistics.slice_summary import ColumnSummary, SlicedCells, SlicedMetric, summarize_slices
from metric_core.statistics.slices import RowSlices
from tasks.runs.run_folder import RunFolder

SLICES = "slices"
"""Entry of summary.json."""


def summarize_slices_of_run(
    folder: RunFolder,
    requests: Sequence[MetricRequest],
    slices: Sequence[RowSlices],
    groups: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Return the entry of summary.json about the slices of a run: a list with an item per column.

    Args:
        slices: Slices of all rows, by column.
        groups: Row id -> group; rows without a group are groups of one. None if rows are independent.
    """
    if not slices:
        return []
    counted = []
    for request in requests:
        cells = SlicedCells(request.key, request.metric.direction, request.bounds, is_grouped=groups is not None)
        cells.add_all(
            (
                (row, score, "" if groups is None else name_group(row, groups.get(row)))
                for row, score in folder.read_scores(request.key)
            ),
            slices,
        )
        counted.append(cells)
    return [_column_entry(column) for column in summarize_slices(counted, slices)]


def _column_entry(column: ColumnSummary) -> dict[str, Any]:
    return {
        "column": column.column,
        "values": column.values,
        "merged": column.merged,
        "slices": [
            {
                "value": one.value,
                "rows": one.rows,
                "is_small": one.is_small,
                "metrics": [_metric_entry(metric) for metric in one.metrics],
            }
            for one in column.slices
        ],
    }


def _metric_entry(metric: SlicedMetric) -> dict[str, Any]:
    """Return a metric in the form of the entries under `metrics`, without reasons, and with the other rows."""
    entry = asdict(metric.summary)
    del entry["reasons"]
    return entry | {"rest": None if metric.rest is None else asdict(metric.rest)}
