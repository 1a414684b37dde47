"""Summarize the slices of a run."""

from collections.abc import Mapping, Sequence

from metric_core.declarations.metric import MetricRequest
from metric_core.statistics.pairs import name_group
from metric_core.statistics.slice_summary import ColumnSummary, SlicedCells, summarize_slices
from metric_core.statistics.slices import RowSlices
from tasks.runs.run_folder import RunFolder


def summarize_slices_of_run(
    folder: RunFolder,
    requests: Sequence[MetricRequest],
    slices: Sequence[RowSlices],
    groups: Mapping[str, str] | None = None,
) -> tuple[ColumnSummary, ...]:
    """Return the summaries of the slices of a run, by column.

    Args:
        slices: Slices of all rows, by column.
        groups: Row id -> group; rows without a group are groups of one. None if rows are independent.
    """
    if not slices:
        return ()
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
    return tuple(summarize_slices(counted, slices))
