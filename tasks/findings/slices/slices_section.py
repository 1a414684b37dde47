"""Describe the slices of a run for its report: a table per column, a row per slice, a cell per metric."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from metric_core.statistics.slice_summary import ColumnSummary
from metric_core.statistics.slices import NO_VALUE, OTHER_VALUES
from metric_core.statistics.summary import MetricSummary
from tasks.documents.figures import format_fixed
from tasks.documents.run.score_table import NEUTRAL, MetricScale
from tasks.documents.run.summary_view import split_key
from tasks.findings.slices.slices_view import SliceLine, describe_column, read_lines
from tasks.runs.row_grouping import TextColumn

CELL_WIDTH, CELL_HEIGHT = 96, 12
"""Size of the drawing of a mean and its interval, in the units of its coordinates."""

_MARGIN = 5


def slice_sections(
    columns: Iterable[ColumnSummary], metrics: Mapping[str, MetricSummary], metric_scales: Sequence[MetricScale]
) -> list[dict[str, Any]]:
    """Return the columns for the page, each with its slices, the worst first."""
    shown = [stick for stick in metric_scales if metrics[stick.key].scored or metrics[stick.key].failed]
    return [_section(column, shown, metrics) for column in columns]


class RowSliceNumbers:
    """The slices of single rows, as the numbers that they have on the page."""

    def __init__(self, columns: Iterable[ColumnSummary]) -> None:
        self._columns = [
            (TextColumn(column.column, "rows cannot be sliced"), _number_values(column)) for column in columns
        ]

    def find(self, sample: Mapping[str, Any]) -> list[int]:
        """Return the number of the row's slice in each column, -1 if the summary does not have it.

        Args:
            sample: Row of the samples table.
        """
        found = []
        for column, numbers in self._columns:
            value = (column.read_row(sample) or "").strip() or NO_VALUE
            found.append(numbers.get(value, numbers.get(OTHER_VALUES, -1)))
        return found


def _number_values(column: ColumnSummary) -> dict[str, int]:
    return {one.value: number for number, one in enumerate(column.slices)}


def _section(
    column: ColumnSummary, shown: Sequence[MetricScale], metrics: Mapping[str, MetricSummary]
) -> dict[str, Any]:
    by_place: dict[tuple[str, str], list[SliceLine]] = {}
    for line in read_lines(column):
        by_place.setdefault((line.slice.value, line.metric), []).append(line)
    numbers, cells = _number_values(column), []
    for stick in shown:
        lines = {one.value: by_place.get((one.value, stick.key), []) for one in column.slices}
        cells.append(_cells(stick, lines, metrics[stick.key]))
    rows: list[dict[str, Any]] = [
        {
            "value": one.value,
            "is_named": one.value not in (NO_VALUE, OTHER_VALUES),
            "number": numbers[one.value],
            "rows": one.rows,
            "is_small": one.is_small,
            "cells": [by_value[one.value] for by_value in cells],
        }
        for one in column.slices
    ]
    ranks = [_rank(rows, number) for number in (None, *range(len(shown)))]
    for row in rows:
        row["ranks"] = " ".join(str(rank[row["number"]]) for rank in ranks)
    return {
        "column": column.column,
        "sentence": describe_column(column),
        "metrics": [{"key": stick.key, "key_parts": split_key(stick.key)} for stick in shown],
        "rows": sorted(rows, key=lambda row: ranks[0][row["number"]]),
        "worse": sum(any(cell["is_worse"] for cell in row["cells"]) for row in rows),
    }


def _rank(rows: Sequence[Mapping[str, Any]], metric: int | None) -> dict[int, int]:
    """Return the place of each slice from the worst, by one metric or by the mean of all on their scales.

    Slices that are worse than the other rows by more than chance come first, those without a mean last, and small ones
    before them.
    """

    def key(row: Mapping[str, Any]) -> tuple[bool, bool, bool, float, int]:
        cells = row["cells"] if metric is None else [row["cells"][metric]]
        good = [cell["goodness"] for cell in cells if cell["goodness"] is not None]
        is_worse = any(cell["is_worse"] for cell in cells)
        return (not good, not is_worse, row["is_small"], float(np.mean(good)) if good else 0.0, row["number"])

    return {row["number"]: place for place, row in enumerate(sorted(rows, key=key))}


def _cells(
    stick: MetricScale, lines: Mapping[str, Sequence[SliceLine]], whole: MetricSummary
) -> dict[str, dict[str, Any]]:
    """Return the cells of a metric by slice, drawn on a common axis."""
    low, high = stick.span or _span(lines)
    distribution = whole.distribution
    whole_x = None if distribution is None else _x(distribution.mean, low, high)
    return {value: _cell(stick, found, (low, high), whole_x) for value, found in lines.items()}


def _cell(
    stick: MetricScale, lines: Sequence[SliceLine], ends: tuple[float, float], whole_x: float | None
) -> dict[str, Any]:
    values = [line for line in lines if line.distribution is not None]
    cell: dict[str, Any] = {
        "is_worse": any(line.is_worse for line in lines),
        "goodness": None,
        "counts": lines[0].counts if lines else (0, 0, 0),
        "scales": [],
        "mean": None,
    }
    distribution = values[0].distribution if values else None
    if distribution is None or len(values) != 1 or values[0].scale is not None:
        named = [(line.scale, line.distribution.mean) for line in values if line.distribution is not None]
        return cell | {"scales": [(scale, format_fixed(mean)) for scale, mean in named]}
    mean, interval = distribution.mean, distribution.interval
    good = float(stick.goodness(np.array([mean]))[0])
    low, high = (interval.low, interval.high) if interval else (mean, mean)
    return cell | {
        "mean": format_fixed(mean),
        "interval": None if interval is None else f"{format_fixed(low)} to {format_fixed(high)}",
        "tone": NEUTRAL if np.isnan(good) else stick.tone(mean),
        "goodness": None if np.isnan(good) else good,
        "mean_x": _x(mean, *ends),
        "low_x": _x(low, *ends),
        "width": round(max(1.0, _x(high, *ends) - _x(low, *ends)), 1),
        "whole_x": whole_x,
    }


def _span(lines: Mapping[str, Sequence[SliceLine]]) -> tuple[float, float]:
    """Return the least and the greatest mean or end of an interval; for metrics without a range."""
    values = [0.0, 0.0]
    distributions = [line.distribution for found in lines.values() for line in found if line.distribution is not None]
    if distributions:
        intervals = [each.interval for each in distributions if each.interval is not None]
        values = [each.mean for each in distributions]
        values += [end for each in intervals for end in (each.low, each.high)]
    low, high = float(min(values)), float(max(values))
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _x(value: float, low: float, high: float) -> float:
    share = min(1.0, max(0.0, (value - low) / (high - low)))
    return round(_MARGIN + share * (CELL_WIDTH - 2 * _MARGIN), 1)
