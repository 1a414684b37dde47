"""Summarize the slices of a run, for summary.json."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import SerializerFunctionWrapHandler, model_serializer

from metric_core.declarations.metric import MetricRequest
from metric_core.statistics.pairs import name_group
from metric_core.statistics.slice_summary import ColumnSummary, SlicedCells, summarize_slices
from metric_core.statistics.slices import RowSlices
from tasks.record.findings import FindingList
from tasks.runs.run_folder import RunFolder


class SliceRecords(FindingList[ColumnSummary]):
    """Summaries by slice, one for each column."""

    entry: ClassVar[str] = "slices"

    @model_serializer(mode="wrap")
    def _leave_out_reasons(self, handler: SerializerFunctionWrapHandler) -> list[Any]:
        """Leave out the reasons of cells of slices, which nothing shows."""
        columns: list[Any] = handler(self)
        for sliced in (metric for column in columns for one in column["slices"] for metric in one["metrics"]):
            sliced.pop("reasons", None)
        return columns


def summarize_slices_of_run(
    folder: RunFolder,
    requests: Sequence[MetricRequest],
    slices: Sequence[RowSlices],
    groups: Mapping[str, str] | None = None,
    weights: Mapping[str, float] | None = None,
) -> tuple[ColumnSummary, ...]:
    """Return the summaries of the slices of a run, by column.

    Args:
        slices: Slices of all rows, by column.
        groups: Row id -> group; rows without a group are groups of one. None if rows are independent.
        weights: Row id -> weight; None if each row counts once.
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
            weights,
        )
        counted.append(cells)
    return tuple(summarize_slices(counted, slices))
