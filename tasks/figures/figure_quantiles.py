"""Estimate the quantiles of figures over the rows of a run, for its summary."""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from pydantic import Field

from metric_core.statistics.bounded_means import Bounds
from metric_core.statistics.pairs import name_group
from metric_core.statistics.quantiles import Quantile, estimate_quantile
from metric_core.statistics.resampling import LEVEL
from tasks.findings.finding import WrittenRows
from tasks.record.findings import FindingMap
from tasks.record.part import Part

QUANTILES = {"p50": 0.5, "p95": 0.95}
"""Name of a quantile -> the share of the rows that have at most this value."""


class QuantileRecord(Part):
    """A quantile of a figure.

    Args:
        low: Lower end of its 95 % interval; None if the rows are too few for one.
        high: Upper end of its 95 % interval; None if the rows are too few for one.
    """

    value: float
    low: float | None
    high: float | None


class FigureRecord(Part):
    """The quantiles of a figure.

    Args:
        rows: Number of rows with a value.
        quantiles: Name of a quantile, such as p95 -> its value and interval.
    """

    rows: int = Field(ge=0)
    quantiles: dict[str, QuantileRecord]


class FigureQuantiles(FindingMap[FigureRecord]):
    """The quantiles of the figures of a run, by metric."""

    entry: ClassVar[str] = "figures"


def count_quantiles(rows: WrittenRows) -> Iterator[FigureQuantiles]:
    """Yield the quantiles of the metrics without a greatest value."""
    found: dict[str, FigureRecord] = {}
    for request in rows.requests:
        bounds = Bounds.of_metric(request.bounds)
        if bounds is None or not bounds.is_open:
            continue
        scores = ((row, score.value) for row, score in rows.folder.read_scores(request.key))
        values = {row: value for row, value in scores if value is not None}
        if not values:
            continue
        numbers = np.array(list(values.values()), dtype=np.float64)
        groups = None if rows.groups is None else [name_group(row, rows.groups.get(row)) for row in values]
        weights = None if rows.weights is None else np.array([rows.weights.get(row, 1.0) for row in values])
        found[request.key] = FigureRecord(
            rows=len(values),
            quantiles={
                name: _record(estimate_quantile(numbers, share, (1 + LEVEL) / 2, groups, weights))
                for name, share in QUANTILES.items()
            },
        )
    if found:
        yield FigureQuantiles(found)


def _record(quantile: Quantile) -> QuantileRecord:
    return QuantileRecord(value=quantile.value, low=quantile.low, high=quantile.high)
